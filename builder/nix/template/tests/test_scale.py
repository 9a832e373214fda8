"""The installed kernel gives what PyTorch gives."""

import pytest
import torch
import my_kernel

SHAPES = [(), (1,), (7,), (31, 33), (3, 5, 7), (1 << 17,), (0,), (3, 0, 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_scale(device: str, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, device=device)
    torch.testing.assert_close(my_kernel.scale(x, 3.0), x * 3.0)


def test_layouts(device: str) -> None:
    x = torch.randn(64, 96, device=device).t()[:, ::2]
    torch.testing.assert_close(my_kernel.scale(x, -0.5), x * -0.5)


def test_gradient(device: str) -> None:
    x = torch.randn(33, 65, device=device, requires_grad=True)
    my_kernel.scale(x, 3.0).sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 3.0))


def test_compiles_to_one_graph(device: str) -> None:
    compiled = torch.compile(my_kernel.scale, backend="aot_eager", fullgraph=True)
    x = torch.randn(33, 65, device=device)
    torch.testing.assert_close(compiled(x, 3.0), x * 3.0)
