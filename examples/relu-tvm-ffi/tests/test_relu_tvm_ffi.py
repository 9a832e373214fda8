"""The installed kernel, called with arrays of NumPy and tensors of PyTorch."""

import numpy as np
import pytest
import relu_tvm_ffi
from relu_tvm_ffi import relu, relu_backward

SHAPES = [(), (1,), (7,), (31, 33), (3, 5, 7, 11), (257, 1031)]
EMPTY = [(0,), (3, 0, 5)]
LAYOUTS = {
    "transposed": lambda x: x.T,
    "every other column": lambda x: x[:, ::2],
    "unaligned": lambda x: x.reshape(-1)[1:],
}


def is_built_for_cuda() -> bool:
    """Return whether the installed wheel refuses memory of the CPU, as that for CUDA does."""
    try:
        relu(np.ones(1, dtype=np.float32))
    except ValueError as error:
        assert "CUDA device" in str(error)  # any other refusal is a fault
        return True
    return False


on_cpu = pytest.mark.skipif(is_built_for_cuda(), reason="the installed wheel is built for CUDA")


@pytest.fixture
def device() -> str:
    """Return the device the wheel is built for; skip if this machine or PyTorch lacks it."""
    torch = pytest.importorskip("torch")
    if not is_built_for_cuda():
        return "cpu"
    if not torch.cuda.is_available():
        pytest.skip("this machine has no CUDA device that PyTorch can use")
    return "cuda"


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return numbers around 0 that are the same in each run."""
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@on_cpu
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [*SHAPES, *EMPTY], ids=str)
def test_numpy(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    y = relu(x)
    assert isinstance(y, np.ndarray)
    np.testing.assert_array_equal(y, np.maximum(x, 0), strict=True)
    grad = numbers((*shape, 2), dtype)[..., 1]
    expected = np.where(x > 0, grad, np.zeros_like(grad))
    np.testing.assert_array_equal(relu_backward(grad, y), expected)


@on_cpu
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numpy_special_values(dtype: str) -> None:
    x = np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-7, -1e-7], dtype=dtype)
    np.testing.assert_array_equal(relu(x), np.maximum(x, 0))


@on_cpu
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_numpy_layouts(layout) -> None:
    x = layout(numbers((64, 96), "float32"))
    np.testing.assert_array_equal(relu(x), np.maximum(x, 0))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [*SHAPES, *EMPTY], ids=str)
def test_torch(device: str, shape: tuple[int, ...], dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(shape, dtype=getattr(torch, dtype), device=device)
    grad = torch.randn(shape, dtype=getattr(torch, dtype), device=device)
    y = relu(x)
    assert torch.equal(y, torch.relu(x))
    assert torch.equal(relu_backward(grad, y), torch.where(x > 0, grad, torch.zeros_like(grad)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_16_bit_number(device: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    bits = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int16)
    x = bits.view(getattr(torch, dtype)).to(device)
    torch.testing.assert_close(relu(x), torch.relu(x), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_torch_layouts(device: str, layout) -> None:
    torch = pytest.importorskip("torch")
    x = layout(torch.randn(64, 96, device=device))
    assert torch.equal(relu(x), torch.relu(x))


@on_cpu
def test_result_is_written_where_the_caller_says() -> None:
    x, out = numbers((5,), "float32"), np.full(5, 9, dtype="float32")
    relu_tvm_ffi.ops.relu(x, out)
    np.testing.assert_array_equal(out, np.maximum(x, 0))


@on_cpu
def test_refuses_what_does_not_match() -> None:
    x = numbers((4, 6), "float32")
    with pytest.raises(TypeError, match="takes float16"):
        relu(np.ones(3, dtype="int32"))
    with pytest.raises(ValueError, match="same shape"):
        relu_backward(x, x[:2])
    with pytest.raises(TypeError, match="same type"):
        relu_backward(x, x.astype("float64"))
    with pytest.raises(ValueError, match="contiguous"):
        relu_tvm_ffi.ops.relu(x.T, x.T.copy())
