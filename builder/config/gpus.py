"""The GPUs that people name: the rows of `data/gpus.toml`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from builder import toml
from builder.config.dependency_names import Known
from builder.config.values import Backend
from builder.resources import DATA

_SHORT = re.compile(r"(?=.*[0-9])[A-Z][A-Za-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A kind of GPU, by the architecture that code is chosen for."""

    backend: Backend
    arch: str
    also: str | None
    """What older toolkits call that architecture."""
    names: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """What it may be called, in lower case."""
        return tuple(word.lower() for word in (self.arch, self.also, *self.names) if word is not None)


class GpuName(Known):
    """A GPU, by its product or its architecture: `H100`, `9.0`, `gfx942`."""

    __slots__ = ()

    code = "B065"
    kind = "a GPU that is known"

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return every valid name."""
        return tuple(_by_name())

    @property
    def gpu(self) -> Gpu:
        """The GPU."""
        return _by_name()[self]


@cache
def table() -> Mapping[str, Any]:
    """Return the tables of `gpus.toml`."""
    return toml.loads((DATA / "gpus.toml").read_text(encoding="utf-8"))


@cache
def known() -> tuple[Gpu, ...]:
    """Return the GPUs, in the file's order."""
    return tuple(
        Gpu(backend=Backend(row["backend"]), arch=row["arch"], also=row.get("also"), names=tuple(row["names"]))
        for row in table()["gpu"]
    )


@cache
def _by_name() -> Mapping[str, Gpu]:
    """Return each GPU by its architectures, its products, and the last words of these that stand for one: `MI300X`."""
    found: dict[str, Gpu] = {}
    for gpu in known():
        short = (name.rpartition(" ")[2] for name in gpu.names)
        words = (gpu.arch, gpu.also, *gpu.names, *filter(_SHORT.fullmatch, short))
        for word in words:
            if word is not None:
                found.setdefault(word, gpu)
    return found
