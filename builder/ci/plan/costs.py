"""What cells are expected to cost."""

from pathlib import PurePosixPath

from builder.ci.plan.runners import data
from builder.config import Config, Framework
from builder.matrix import Cell, absent_components

_HOST = frozenset({".c", ".cc", ".cpp", ".cxx"})
_DEVICE = frozenset({".cu", ".hip", ".metal", ".mm", ".sycl"})
_GLOB = 4
"""Translation units that a glob is taken for: an estimate reads no files."""


class Costs:
    """Expected seconds of the cells of one config."""

    __slots__ = ("_compile", "config")

    def __init__(self, config: Config) -> None:
        self.config = config
        self._compile: dict[tuple[object, ...], float] = {}

    def seconds(self, cell: Cell) -> float:
        """Return how long `cell` takes on one runner."""
        fixed = data()["cost"]["fixed"]
        own = fixed.get("noarch" if cell.noarch else cell.backend.value, max(fixed.values()))
        return float(own) + self.compile_seconds(cell)

    def compile_seconds(self, cell: Cell) -> float:
        """Return how long its compilers run, one after the other."""
        absent = absent_components(self.config, cell)
        kind = (cell.compute, cell.noarch, cell.stable_abi is None, absent)
        found = self._compile.get(kind)
        if found is None:
            found = self._compile[kind] = 0.0 if cell.noarch else self._estimate(cell, absent)
        return found

    def _estimate(self, cell: Cell, absent: tuple[str, ...]) -> float:
        table = data()["cost"][_interface(cell)]
        tables = self.config.tables(cell.backend)
        sources = [
            source for path, part in tables if path[-1] not in absent or path[0] != "kernel" for source in part.src
        ]
        device = table.get(cell.backend.value, table["host"])
        return sum(_units(source, host=table["host"], device=device) for source in sources)


def _interface(cell: Cell) -> str:
    if cell.framework is Framework.TVM_FFI:
        return "tvm-ffi"
    if cell.framework is Framework.CTYPES:
        return "stable"  # its sources include no headers of torch either
    return "classic" if cell.stable_abi is None else "stable"


def _units(source: str, *, host: float, device: float) -> float:
    path = PurePosixPath(source)
    count = _GLOB if any(character in source for character in "*?[") else 1
    if path.suffix in _DEVICE:
        return count * device
    return count * host if path.suffix in _HOST else 0.0
