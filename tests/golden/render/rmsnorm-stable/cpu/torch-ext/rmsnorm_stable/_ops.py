"""The operators of this build, under the name that is its alone."""

import torch

from . import _rmsnorm_stable_cpu_golden

ops = torch.ops._rmsnorm_stable_cpu_golden


def add_op_namespace_prefix(op_name: str) -> str:
    """Return the full name of an operator of this build."""
    return f"_rmsnorm_stable_cpu_golden::{op_name}"
