"""The Triton kernels: computed in float32 whatever the type is, and rounded once."""

from contextlib import nullcontext

import torch
import triton
import triton.language as tl

BLOCK = 1024


def forward(input: torch.Tensor) -> torch.Tensor:
    """Return `silu(gate) * up` for the two halves of the last dimension."""
    input = input.contiguous()
    columns = input.shape[-1] // 2
    output = input.new_empty((*input.shape[:-1], columns))
    if output.numel() > 0:
        with _device_of(input):
            _forward[_grid(output)](input, output, columns, BLOCK=BLOCK)
    return output


def backward(grad: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    """Return the gradient with respect to `input`, given that of the result."""
    grad, input = grad.contiguous(), input.contiguous()
    grad_input = torch.empty_like(input)
    if grad.numel() > 0:
        with _device_of(input):
            _backward[_grid(grad)](grad, input, grad_input, grad.shape[-1], BLOCK=BLOCK)
    return grad_input


def _grid(half: torch.Tensor) -> tuple[int, int]:
    """Return the number of rows, and of blocks in a row."""
    columns = half.shape[-1]
    return half.numel() // columns, triton.cdiv(columns, BLOCK)


def _device_of(tensor: torch.Tensor):
    """Return a context in which Triton launches on the tensor's device, not the current one."""
    if tensor.device.type == "cpu":  # Triton's interpreter
        return nullcontext()
    return torch.get_device_module(tensor.device).device(tensor.device)


@triton.jit
def _forward(input, output, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    start = input + row * 2 * columns + column
    gate = tl.load(start, mask=mask).to(tl.float32)
    up = tl.load(start + columns, mask=mask).to(tl.float32)
    result = gate * tl.sigmoid(gate) * up
    tl.store(output + row * columns + column, result.to(output.dtype.element_ty), mask=mask)


@triton.jit
def _backward(grad, input, grad_input, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    dy = tl.load(grad + row * columns + column, mask=mask).to(tl.float32)
    start = input + row * 2 * columns + column
    gate = tl.load(start, mask=mask).to(tl.float32)
    up = tl.load(start + columns, mask=mask).to(tl.float32)
    sigmoid = tl.sigmoid(gate)
    silu = gate * sigmoid
    grad_gate = dy * up * (sigmoid + silu * (1 - sigmoid))
    result = grad_input + row * 2 * columns + column
    tl.store(result, grad_gate.to(grad_input.dtype.element_ty), mask=mask)
    tl.store(result + columns, (dy * silu).to(grad_input.dtype.element_ty), mask=mask)
