"""The installed kernel against its definition, in float64."""

import pytest
import torch
import torch.nn.functional as F
from silu_and_mul import _ops, layers, silu_and_mul
from torch.autograd import gradcheck

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
SHAPES = [(2,), (14,), (5, 66), (3, 5, 254), (2, 8192), (1, 2050)]
EMPTY = [(0,), (0, 6), (3, 0)]
LAYOUTS = {
    "transposed": lambda x: x.t(),
    "every other column": lambda x: x[:, ::2],
    "every other row": lambda x: x[::2],
    "expanded": lambda x: x[:1].expand(5, -1),
}


def random(shape: tuple[int, ...], device: str, dtype: torch.dtype) -> torch.Tensor:
    """Return numbers that are the same in each run."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Return the definition, in float64 and rounded once."""
    gate, up = x.double().chunk(2, dim=-1)
    return (gate / (1 + torch.exp(-gate)) * up).to(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_forward(device: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x = random(shape, device, dtype)
    torch.testing.assert_close(silu_and_mul(x), reference(x), rtol=1.6e-2, atol=1e-4)
    torch.testing.assert_close(_ops.ops.silu_and_mul(x), silu_and_mul(x))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(device: str, layout) -> None:
    x = layout(random((64, 96), device, torch.float32))
    torch.testing.assert_close(silu_and_mul(x), reference(x))


def test_float64_and_its_gradient(device: str) -> None:
    x = random((3, 10), device, torch.float64).requires_grad_()
    torch.testing.assert_close(silu_and_mul(x), reference(x))
    assert gradcheck(silu_and_mul, (x,))


def test_gradient_of_the_op(device: str) -> None:
    x = random((6, 34), device, torch.float32).requires_grad_()
    other = x.detach().clone().requires_grad_()
    grad = random((17, 6), device, torch.float32).t()
    _ops.ops.silu_and_mul(x).backward(grad)
    gate, up = other.chunk(2, dim=-1)
    (F.silu(gate) * up).backward(grad)
    torch.testing.assert_close(x.grad, other.grad)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES + EMPTY, ids=str)
def test_triton(triton_device: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    from silu_and_mul import _triton

    x = random(shape, triton_device, dtype)
    torch.testing.assert_close(_triton.forward(x), reference(x))
    x64 = x.double().requires_grad_()
    grad = random((*shape[:-1], shape[-1] // 2), triton_device, dtype)
    reference(x64).backward(grad.double())
    torch.testing.assert_close(_triton.backward(grad, x), x64.grad.to(dtype))


@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "grad"])
def test_ops_are_well_registered(device: str, requires_grad: bool) -> None:
    x = random((6, 8), device, torch.float32)
    for view in (x, x[::2]):
        argument = view.detach().requires_grad_(requires_grad)
        torch.library.opcheck(_ops.ops.silu_and_mul.default, (argument,))
    torch.library.opcheck(_ops.ops.silu_and_mul_backward.default, (x[:, ::2], x))


def test_compiles_to_one_graph(device: str) -> None:
    layer = torch.compile(layers.SiluAndMul(), backend="aot_eager", fullgraph=True)
    x = random((5, 48), device, torch.float32).requires_grad_()
    y = layer(x)
    torch.testing.assert_close(y, reference(x))
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_refuses_what_it_cannot_halve(device: str) -> None:
    with pytest.raises(ValueError, match=r"\(4, 3\) is not even"):
        silu_and_mul(torch.ones(4, 3, device=device))
    with pytest.raises(ValueError, match="not even"):
        silu_and_mul(torch.ones((), device=device))
    with pytest.raises(TypeError, match="int32"):
        silu_and_mul(torch.ones(4, 2, device=device, dtype=torch.int32))
