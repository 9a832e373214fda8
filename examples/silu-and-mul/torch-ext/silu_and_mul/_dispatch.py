"""Which implementation an input gets, and what PyTorch needs to know of the Triton one."""

import torch
import torch.nn.functional as F

from ._ops import add_op_namespace_prefix, ops

try:
    from . import _triton
except ImportError:  # Triton comes with PyTorch for GPUs
    _triton = None

DEVICES = ("cuda", "xpu")  # "cuda" is also what PyTorch calls an AMD GPU
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def silu_and_mul(input: torch.Tensor) -> torch.Tensor:
    """Return `silu(gate) * up`, with `gate` and `up` the two halves of the last dimension."""
    if input.dim() == 0 or input.shape[-1] % 2 != 0:
        raise ValueError(f"silu_and_mul: the last dimension of {tuple(input.shape)} is not even")
    if not input.is_floating_point():
        raise TypeError(f"silu_and_mul: takes floating-point tensors, not {input.dtype}")
    if _triton is not None and input.device.type in DEVICES and input.dtype in DTYPES:
        return ops.silu_and_mul(input)
    return in_pytorch(input)


def in_pytorch(input: torch.Tensor) -> torch.Tensor:
    """Return the same by PyTorch's operators, which `torch.compile` fuses and autograd knows."""
    gate, up = input.chunk(2, dim=-1)
    return F.silu(gate) * up


# The op is there on every device, so that an exported graph can be loaded on any; each of its
# implementations is told to PyTorch together with the shape of its result and its gradient.


@torch.library.custom_op(add_op_namespace_prefix("silu_and_mul"), mutates_args=())
def _silu_and_mul(input: torch.Tensor) -> torch.Tensor:
    return in_pytorch(input)


@torch.library.register_fake(add_op_namespace_prefix("silu_and_mul"))
def _silu_and_mul_fake(input):
    return input.new_empty((*input.shape[:-1], input.shape[-1] // 2))


@torch.library.custom_op(add_op_namespace_prefix("silu_and_mul_backward"), mutates_args=())
def _silu_and_mul_backward(grad: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    gate, up = input.chunk(2, dim=-1)
    sigmoid = torch.sigmoid(gate)
    silu = gate * sigmoid
    grad_gate = grad * up * (sigmoid + silu * (1 - sigmoid))
    return torch.cat((grad_gate, grad * silu), dim=-1)


@torch.library.register_fake(add_op_namespace_prefix("silu_and_mul_backward"))
def _silu_and_mul_backward_fake(grad, input):
    return torch.empty_like(input, memory_format=torch.contiguous_format)


def _keep_input(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def _gradient(ctx, grad):
    (input,) = ctx.saved_tensors
    return ops.silu_and_mul_backward(grad, input)


torch.library.register_autograd(
    add_op_namespace_prefix("silu_and_mul"), _gradient, setup_context=_keep_input
)

if _triton is not None:
    torch.library.register_kernel(
        add_op_namespace_prefix("silu_and_mul"), DEVICES, _triton.forward
    )
    torch.library.register_kernel(
        add_op_namespace_prefix("silu_and_mul_backward"), DEVICES, _triton.backward
    )
