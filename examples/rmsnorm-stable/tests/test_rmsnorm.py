"""The installed kernel against `torch.nn.functional.rms_norm`."""

import pytest
import torch
import torch.nn.functional as F
from rmsnorm_stable import add_rms_norm, layers, ops, rms_norm
from torch.autograd import gradcheck

EPS = 1e-6
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
SHAPES = [(1,), (7,), (1, 1), (5, 33), (3, 5, 127), (2, 4096), (1000, 8), (4, 16385)]

LAYOUTS = {
    "transposed": lambda x: x.t(),
    "every other column": lambda x: x[:, ::2],
    "every other row": lambda x: x[::2],
    "unaligned": lambda x: x.flatten()[1:4001].view(-1, 8),
    "expanded": lambda x: x[:1].expand(5, -1),
}


def random(shape: tuple[int, ...], device: str, dtype: torch.dtype) -> torch.Tensor:
    """Return numbers that are the same in each run."""
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(device, dtype)


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return what PyTorch computes, in float64 and rounded once."""
    return F.rms_norm(x.double(), x.shape[-1:], weight.double(), EPS).to(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rms_norm(device: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x, weight = random(shape, device, dtype), random(shape[-1:], device, dtype)
    before = x.clone()
    torch.testing.assert_close(rms_norm(x, weight, EPS), reference(x, weight))
    torch.testing.assert_close(x, before, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_add_rms_norm(device: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x, weight = random(shape, device, dtype), random(shape[-1:], device, dtype)
    residual = random((2, *shape), device, dtype)[1]
    output, total = add_rms_norm(x, residual, weight, EPS)
    torch.testing.assert_close(total, x + residual, rtol=0, atol=0)
    torch.testing.assert_close(output, reference(x + residual, weight))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(device: str, dtype: torch.dtype, layout) -> None:
    x = layout(random((63, 64), device, dtype))
    weight = random((2 * x.shape[-1],), device, dtype)[::2]
    output, total = add_rms_norm(x, x, weight, EPS)
    assert output.is_contiguous()
    assert total.is_contiguous()
    torch.testing.assert_close(total, x + x, rtol=0, atol=0)
    torch.testing.assert_close(output, reference(x + x, weight))
    torch.testing.assert_close(rms_norm(x, weight, EPS), reference(x, weight))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_every_16_bit_number_is_read_and_written(device: str, dtype: torch.dtype) -> None:
    numbers = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int16).view(dtype).to(device)
    weight = torch.ones(256, device=device, dtype=dtype)
    for other in (0.0, 1.0, 2.0**-20, 60000.0):
        residual = torch.full_like(numbers, other)
        _, total = add_rms_norm(numbers.view(256, 256), residual.view(256, 256), weight, EPS)
        expected = (numbers + residual).view(256, 256)
        torch.testing.assert_close(total, expected, rtol=0, atol=0, equal_nan=True)


def test_nan_and_infinity_stay_in_their_row(device: str) -> None:
    x = random((3, 100), device, torch.float32)
    x[0, 5], x[2, 7] = float("nan"), float("inf")
    weight = torch.ones(100, device=device)
    torch.testing.assert_close(rms_norm(x, weight, EPS), reference(x, weight), equal_nan=True)


def test_a_row_of_zeros_stays_zero(device: str) -> None:
    x = torch.zeros(2, 33, device=device)
    assert torch.equal(rms_norm(x, torch.ones(33, device=device)), x)


@pytest.mark.parametrize("shape", [(0,), (0, 5), (3, 0)], ids=str)
def test_empty(device: str, shape: tuple[int, ...]) -> None:
    x, weight = torch.empty(shape, device=device), torch.empty(shape[-1:], device=device)
    output, total = add_rms_norm(x, x, weight)
    assert rms_norm(x, weight).shape == output.shape == total.shape == shape


@pytest.mark.parametrize("shape", [(6,), (3, 6)], ids=str)
def test_gradient(device: str, shape: tuple[int, ...]) -> None:
    x, weight = random(shape, device, torch.float64), random((6,), device, torch.float64)
    residual = random((2, *shape), device, torch.float64)[1]
    for tensor in (x, residual, weight):
        tensor.requires_grad_()
    assert gradcheck(rms_norm, (x, weight, 0.1))
    assert gradcheck(add_rms_norm, (x, residual, weight, 0.1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_backward_is_that_of_pytorch(device: str, dtype: torch.dtype) -> None:
    x, weight = random((8, 48), device, dtype), random((48,), device, dtype)
    grad = random((9, 48), device, dtype)[1:]
    ours = [t.clone().requires_grad_() for t in (x, weight)]
    theirs = [t.clone().requires_grad_() for t in (x, weight)]
    rms_norm(*ours, EPS).backward(grad)
    F.rms_norm(theirs[0], (48,), theirs[1], EPS).backward(grad)
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    for one, other in zip(ours, theirs):
        torch.testing.assert_close(one.grad, other.grad, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "grad"])
def test_ops_are_well_registered(device: str, requires_grad: bool) -> None:
    weight = random((8,), device, torch.float32).requires_grad_(requires_grad)
    x = random((6, 8), device, torch.float32)
    for view in (x, x.t()[:8, :].t(), x[::2]):
        argument = view.detach().requires_grad_(requires_grad)
        torch.library.opcheck(ops.rms_norm.default, (argument, weight, EPS))
        torch.library.opcheck(ops.add_rms_norm.default, (argument, argument.detach(), weight, EPS))


def test_compiles_to_one_graph(device: str) -> None:
    layer = layers.RMSNorm()
    layer.weight = torch.nn.Parameter(random((48,), device, torch.float32))
    layer.variance_epsilon = EPS
    x = random((5, 48), device, torch.float32)
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), reference(x, layer.weight))


def test_refuses_what_does_not_match(device: str) -> None:
    x, weight = torch.ones(3, 8, device=device), torch.ones(8, device=device)
    with pytest.raises(RuntimeError, match="weight must have 8 elements"):
        rms_norm(x, weight[:7])
    with pytest.raises(RuntimeError, match="same type"):
        rms_norm(x, weight.half())
    with pytest.raises(RuntimeError, match="residual"):
        add_rms_norm(x, x[:2], weight)
    with pytest.raises(RuntimeError, match="no dimension"):
        rms_norm(x[0, 0], weight)
    with pytest.raises(RuntimeError, match="not implemented"):
        rms_norm(x.int(), weight.int())
