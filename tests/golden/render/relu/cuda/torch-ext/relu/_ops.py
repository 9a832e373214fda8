"""The operators of this build, under the name that is its alone."""

import torch

from . import _relu_cuda_golden

ops = torch.ops._relu_cuda_golden


def add_op_namespace_prefix(op_name: str) -> str:
    """Return the full name of an operator of this build."""
    return f"_relu_cuda_golden::{op_name}"
