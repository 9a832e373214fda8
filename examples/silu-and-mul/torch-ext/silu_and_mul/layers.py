"""Layers that take the place of those of a model."""

import torch
from torch import nn

from ._dispatch import silu_and_mul

__all__ = ["SiluAndMul"]


class SiluAndMul(nn.Module):
    """The activation of a gated feed-forward layer whose two projections are one matrix."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Return `silu(gate) * up` for the two halves of the last dimension of `input`."""
        return silu_and_mul(input)
