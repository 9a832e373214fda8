"""Multiply by a factor."""

from ._ops import ops

__all__ = ["ops"]
