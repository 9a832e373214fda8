"""Scale a tensor; works under autograd and `torch.compile`."""

import torch

from ._ops import add_op_namespace_prefix, ops

__all__ = ["scale"]


def scale(input: torch.Tensor, factor: float) -> torch.Tensor:
    """Return `input` times `factor`; the result is contiguous."""
    return ops.scale(input, factor)


# What torch.compile needs to know: the shape, type and strides of the result.


@torch.library.register_fake(add_op_namespace_prefix("scale"))
def _scale_fake(input: torch.Tensor, factor: float) -> torch.Tensor:
    return torch.empty_like(input, memory_format=torch.contiguous_format)


# What autograd needs to know.


def _keep_factor(ctx, inputs, output):
    ctx.factor = inputs[1]


def _gradient(ctx, grad):
    return ops.scale(grad, ctx.factor), None


torch.library.register_autograd(add_op_namespace_prefix("scale"), _gradient, setup_context=_keep_factor)
