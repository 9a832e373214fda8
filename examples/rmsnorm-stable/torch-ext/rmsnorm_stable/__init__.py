"""RMS normalisation, alone or fused with the residual addition before it."""

import torch

from . import layers
from ._ops import add_op_namespace_prefix, ops

__all__ = ["add_rms_norm", "layers", "rms_norm"]


def rms_norm(input: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Return `input / sqrt(mean(input²) + eps) * weight`, the mean being over the last dimension."""
    return ops.rms_norm(input, weight, eps)


def add_rms_norm(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `rms_norm(input + residual, weight, eps)` and `input + residual`, in one pass."""
    return ops.add_rms_norm(input, residual, weight, eps)


# What torch.compile needs to know: the shape, type and strides of a result.


@torch.library.register_fake(add_op_namespace_prefix("rms_norm"))
def _rms_norm_fake(input, weight, eps):
    return torch.empty_like(input, memory_format=torch.contiguous_format)


@torch.library.register_fake(add_op_namespace_prefix("add_rms_norm"))
def _add_rms_norm_fake(input, residual, weight, eps):
    output = torch.empty_like(input, memory_format=torch.contiguous_format)
    return output, torch.empty_like(output)


# What autograd needs to know. The forward pass is where the time goes in inference; the gradient
# is plain PyTorch, which torch.compile fuses.


def _gradients(grad, x, weight, eps):
    """Return the gradients of `rms_norm(x, weight, eps)` with respect to `x` and `weight`."""
    compute = torch.promote_types(x.dtype, torch.float32)
    grad, x_, weight_ = grad.to(compute), x.to(compute), weight.to(compute)
    scale = torch.rsqrt(x_.square().mean(-1, keepdim=True) + eps)
    normal = x_ * scale
    weighted = grad * weight_
    grad_x = scale * (weighted - normal * (weighted * normal).mean(-1, keepdim=True))
    grad_weight = (grad * normal).flatten(0, -2).sum(0) if x.dim() > 1 else grad * normal
    return grad_x.to(x.dtype), grad_weight.to(weight.dtype)


def _keep_input(ctx, inputs, output):
    x, weight, ctx.eps = inputs
    ctx.save_for_backward(x, weight)


def _rms_norm_gradient(ctx, grad):
    return (*_gradients(grad, *ctx.saved_tensors, ctx.eps), None)


torch.library.register_autograd(
    add_op_namespace_prefix("rms_norm"), _rms_norm_gradient, setup_context=_keep_input
)


def _keep_sum(ctx, inputs, output):
    _, _, weight, ctx.eps = inputs
    _, total = output
    ctx.save_for_backward(total, weight)


def _add_rms_norm_gradient(ctx, grad, grad_sum):
    grad_x, grad_weight = _gradients(grad, *ctx.saved_tensors, ctx.eps)
    grad_x = grad_x + grad_sum
    return grad_x, grad_x, grad_weight, None


torch.library.register_autograd(
    add_op_namespace_prefix("add_rms_norm"), _add_rms_norm_gradient, setup_context=_keep_sum
)
