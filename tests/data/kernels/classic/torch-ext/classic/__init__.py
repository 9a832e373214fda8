"""Twice the input."""

from ._ops import ops


def twice(input):
    return ops.twice(input)
