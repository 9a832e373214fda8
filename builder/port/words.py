"""Which keys the config has: `port` writes those, and tells a person of the others."""

from functools import lru_cache

from builder.config import Config, shape
from builder.config.shape import Array, Record, Table, Tagged
from builder.config.source_tables import CudaComponent, Torch


@lru_cache
def has(table: str, key: str) -> bool:
    """Whether a table of the config (`torch`, `kernel`, one of the top) has a key; an empty one asks for the table."""
    own = {"torch": Torch, "kernel": CudaComponent}.get(table)
    if own is None:
        own = next((_record(item.kind) for item in shape.fields(Config) if item.key == table), None)
        if own is None or not key:
            return own is not None
    return any(key == item.key for item in shape.fields(own))


def _record(kind: object) -> type | None:
    match kind:
        case Record(type=cls):
            return cls
        case Table(value=value):
            return _record(value)
        case Array(item=item):
            return _record(item)
        case Tagged(variants=variants):
            return variants[0][1]
        case _:
            return None
