"""Fixtures: `device`, each device of this machine that the installed kernel works on."""

import pytest
import torch
import my_kernel

DEVICES = ("cpu", "cuda", "mps", "xpu")


def works_on(device: str) -> bool:
    """Return whether this machine has `device` and the installed wheel is built for it."""
    if device != "cpu" and not getattr(torch, device).is_available():
        return False
    try:
        my_kernel.scale(torch.ones(1, device=device), 2.0)
    except NotImplementedError:
        return False
    return True


WORKING = [device for device in DEVICES if works_on(device)]


@pytest.fixture(params=WORKING or [pytest.param("none", marks=pytest.mark.skip(reason="no device for this wheel"))])
def device(request: pytest.FixtureRequest) -> str:
    """Return each device in turn."""
    return request.param
