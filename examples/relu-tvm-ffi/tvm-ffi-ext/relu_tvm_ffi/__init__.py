"""ReLU and its gradient for the arrays of any library that speaks DLPack, with no copy."""

import sys
from typing import TypeVar

from ._ops import ops

__all__ = ["relu", "relu_backward"]

Array = TypeVar("Array")


def relu(input: Array) -> Array:
    """Return `input` where it is positive, and 0 elsewhere, as an array of the same library."""
    input = _contiguous(input)
    output = _empty_like(input)
    ops.relu(input, output)
    return output


def relu_backward(grad: Array, output: Array) -> Array:
    """Return the gradient of `relu`, given its `output` and the gradient `grad` of that."""
    grad = _contiguous(grad)
    grad_input = _empty_like(grad)
    ops.relu_backward(grad, _contiguous(output), grad_input)
    return grad_input


def _library(array: Array):
    """Return the package that `array` comes from, which its caller has imported: torch, numpy, …"""
    return sys.modules[type(array).__module__.partition(".")[0]]


def _contiguous(array: Array) -> Array:
    if hasattr(array, "is_contiguous"):  # PyTorch
        return array.detach().contiguous()
    return _library(array).asarray(array, order="C")


def _empty_like(array: Array) -> Array:
    return _library(array).empty_like(array)
