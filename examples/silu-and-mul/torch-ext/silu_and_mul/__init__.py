"""The gate of Llama's feed-forward layer and its relatives: `silu(gate) * up`, in one kernel."""


from . import layers
from ._dispatch import silu_and_mul

__all__ = ["layers", "silu_and_mul"]
