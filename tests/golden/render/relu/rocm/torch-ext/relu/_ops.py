"""The operators of this build, under the name that no other build has."""

from pathlib import Path

import torch

torch.ops.load_library(Path(__file__).parent / "_relu_rocm_golden.so")

ops = torch.ops._relu_rocm_golden


def add_op_namespace_prefix(op_name: str) -> str:
    """Return the full name of an operator of this build."""
    return f"_relu_rocm_golden::{op_name}"
