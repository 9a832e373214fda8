"""Fixtures: `device`, each device that the installed kernel is built for."""

import pytest
import rmsnorm_stable
import torch

DISPATCH_KEYS = {"cpu": "CPU", "cuda": "CUDA"}
BUILT_FOR = [
    device
    for device, key in DISPATCH_KEYS.items()
    if torch._C._dispatch_has_kernel_for_dispatch_key(f"{rmsnorm_stable.ops.name}::rms_norm", key)
]
if not BUILT_FOR:
    raise ImportError(f"{rmsnorm_stable.__file__} registered its ops for no device")


@pytest.fixture(params=BUILT_FOR)
def device(request: pytest.FixtureRequest) -> str:
    """Return each device in turn; skip those that this machine lacks."""
    if request.param != "cpu" and not getattr(torch, request.param).is_available():
        pytest.skip(f"this machine has no {request.param} device")
    return request.param
