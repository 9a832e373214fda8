"""The devices a test runs on: the CPU, always, and whatever GPU there is."""

import os

import pytest
import torch

GPUS = ("cuda", "xpu")

if not any(getattr(torch, gpu).is_available() for gpu in GPUS):
    # Where Triton is installed but no GPU is, its interpreter runs the kernels on the CPU. It
    # must be asked for before the kernels are defined.
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(params=["cpu", *GPUS])
def device(request: pytest.FixtureRequest) -> str:
    """Return each device in turn; skip those that this machine lacks."""
    if request.param != "cpu" and not getattr(torch, request.param).is_available():
        pytest.skip(f"this machine has no {request.param} device")
    return request.param


@pytest.fixture
def triton_device() -> str:
    """Return the device to run the Triton kernels on; skip if Triton is not installed."""
    pytest.importorskip("triton")
    return next((gpu for gpu in GPUS if getattr(torch, gpu).is_available()), "cpu")
