"""The installed kernel gives what PyTorch's own ReLU gives, to the bit."""

import pytest
import relu
import torch
from torch.autograd import gradcheck, gradgradcheck

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
SHAPES = [(), (1,), (7,), (31, 33), (3, 5, 7, 11), (1 << 17,), (257, 1031)]

LAYOUTS = {
    "transposed": lambda x: x.t(),
    "every other column": lambda x: x[:, ::2],
    "unaligned": lambda x: x.flatten()[1:],
    "expanded": lambda x: x[:, :1].expand(-1, 64),
    "channels last": lambda x: x.view(2, 4, 8, -1).contiguous(memory_format=torch.channels_last),
}


def same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Fail unless the two are equal in every bit that counts."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_forward(device: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, device=device, dtype=dtype)
    before = x.clone()
    same(relu.relu(x), torch.relu(x))
    same(x, before)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_backward(device: str, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, device=device, dtype=dtype)
    grad = torch.randn(shape, device=device, dtype=dtype)
    expected = torch.where(x > 0, grad, torch.zeros_like(grad))
    same(relu.relu_backward(grad, torch.relu(x)), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_special_values(device: str, dtype: torch.dtype) -> None:
    values = [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e-7, -1e-7]
    x = torch.tensor(values, device=device, dtype=dtype).repeat(5)
    same(relu.relu(x), torch.relu(x))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts(device: str, dtype: torch.dtype, layout) -> None:
    x = layout(torch.randn(64, 96, device=device, dtype=dtype))
    actual = relu.relu(x)
    assert actual.is_contiguous()
    same(actual, torch.relu(x).contiguous())
    same(relu.relu_backward(x, actual), torch.relu(x).contiguous())


@pytest.mark.parametrize("shape", [(0,), (3, 0, 5)], ids=str)
def test_empty(device: str, shape: tuple[int, ...]) -> None:
    x = torch.empty(shape, device=device)
    assert relu.relu(x).shape == shape
    assert relu.relu_backward(x, x).shape == shape


def test_autograd(device: str) -> None:
    x = torch.randn(33, 65, device=device, requires_grad=True)
    reference = x.detach().clone().requires_grad_()
    (relu.relu(x) * 3).sum().backward()
    (torch.relu(reference) * 3).sum().backward()
    same(x.grad, reference.grad)


def test_first_and_second_gradient(device: str) -> None:
    if device == "mps":
        pytest.skip("gradcheck needs float64, which Metal does not have")
    x = torch.randn(5, 7, device=device, dtype=torch.float64)
    x = (x + x.sign()).requires_grad_()  # away from the kink at 0
    assert gradcheck(relu.relu, (x,))
    assert gradgradcheck(relu.relu, (x,))


@pytest.mark.parametrize("requires_grad", [False, True], ids=["plain", "grad"])
def test_ops_are_well_registered(device: str, requires_grad: bool) -> None:
    x = torch.randn(6, 8, device=device)
    y = torch.randn(6, 8, device=device)
    for view in (x, x.t(), x[:, ::2]):
        argument = view.detach().requires_grad_(requires_grad)
        torch.library.opcheck(relu.ops.relu.default, (argument,))
    x.requires_grad_(requires_grad)
    torch.library.opcheck(relu.ops.relu_backward.default, (x, y))


def test_compiles_to_one_graph(device: str) -> None:
    layer = torch.compile(relu.layers.ReLU(), backend="aot_eager", fullgraph=True)
    x = torch.randn(33, 65, device=device, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    same(y, torch.relu(x))
    same(x.grad, (x > 0).to(x.dtype))


def test_refuses_what_does_not_match(device: str) -> None:
    x = torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match="shape"):
        relu.relu_backward(x, x[:3])
    with pytest.raises(RuntimeError, match="Half"):
        relu.relu_backward(x, x.half())
    with pytest.raises(RuntimeError, match="not implemented"):
        relu.relu(torch.ones(4, device=device, dtype=torch.int32))
