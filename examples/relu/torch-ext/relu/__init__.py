"""ReLU, with its gradient: works under autograd and `torch.compile`."""

import torch

from . import layers
from ._ops import add_op_namespace_prefix, ops

__all__ = ["layers", "relu", "relu_backward"]


def relu(input: torch.Tensor) -> torch.Tensor:
    """Return `input` where it is positive, and 0 elsewhere; the result is contiguous."""
    return ops.relu(input)


def relu_backward(grad: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    """Return the gradient of `relu`, given its `output` and the gradient `grad` of that."""
    return ops.relu_backward(grad, output)


# What torch.compile needs to know: the shape, type and strides of a result.


@torch.library.register_fake(add_op_namespace_prefix("relu"))
def _relu_fake(input: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(input, memory_format=torch.contiguous_format)


@torch.library.register_fake(add_op_namespace_prefix("relu_backward"))
def _relu_backward_fake(grad: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(grad, memory_format=torch.contiguous_format)


# What autograd needs to know: the output alone gives the gradient, so the input need not be kept.


def _keep_output(ctx, inputs, output):
    ctx.save_for_backward(output)


def _relu_gradient(ctx, grad):
    (output,) = ctx.saved_tensors
    return ops.relu_backward(grad, output)


torch.library.register_autograd(
    add_op_namespace_prefix("relu"), _relu_gradient, setup_context=_keep_output
)


def _keep_relu_output(ctx, inputs, output):
    ctx.save_for_backward(inputs[1])


def _relu_backward_gradient(ctx, grad):
    (output,) = ctx.saved_tensors
    return ops.relu_backward(grad, output), None


torch.library.register_autograd(
    add_op_namespace_prefix("relu_backward"),
    _relu_backward_gradient,
    setup_context=_keep_relu_output,
)
