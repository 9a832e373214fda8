"""Layers that take the place of those of a model."""

import torch
from torch import nn

from ._ops import ops

__all__ = ["RMSNorm"]


class RMSNorm(nn.Module):
    """The normalisation of Llama and its relatives, which hold `weight` and `variance_epsilon`."""

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Return the normalised `hidden_states`."""
        return ops.rms_norm(hidden_states, self.weight, self.variance_epsilon)
