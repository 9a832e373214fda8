"""The namespace for operators of this build, under a name that no other build has."""

import torch


def _backend() -> str:
    """Return the backend that this torch runs kernels on."""
    from importlib.util import find_spec

    if find_spec("torch_tpu") is not None or hasattr(torch, "tpu"):
        return "tpu"
    if hasattr(torch, "neuron"):
        return "neuron"
    if getattr(torch.version, "cuda", None) is not None:
        return "cuda"
    if getattr(torch.version, "hip", None) is not None:
        return "rocm"
    if getattr(torch.version, "xpu", None) is not None:
        return "xpu"
    if torch.backends.mps.is_available():
        return "metal"
    return "cpu"


_NAME = f"_silu_and_mul_{_backend()}_golden"

ops = getattr(torch.ops, _NAME)


def add_op_namespace_prefix(op_name: str) -> str:
    """Return the full name of an operator of this build."""
    return f"{_NAME}::{op_name}"
