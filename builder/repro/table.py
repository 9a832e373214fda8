"""The table variation by backend of the documentation: which cells stand for a backend, and how it is written."""

from collections.abc import Sequence
from dataclasses import dataclass

from builder.repro.variations import VARIATIONS

START, END = "<!-- table: benchmarks/repro.py table --write -->", "<!-- end of table -->"
BACKENDS = {
    "cpu, classic": ("examples/relu", "torch213-cxx11-cpu-x86_64-linux"),
    "cpu, stable ABI": ("tests/data/kernels/tiny", "torch-stable-abi210-cpu-x86_64-linux"),
    "cuda, stable ABI": ("tests/data/kernels/everywhere", "torch-stable-abi210-cu130-x86_64-linux"),
    "noarch": ("examples/silu-and-mul", "torch-cpu"),
    "tvm-ffi": ("examples/relu-tvm-ffi", "tvm-ffi01-cpu-x86_64-linux"),
}
"""Name of a backend → kernel and variant that stand for it; a pinned environment on x86_64-linux has all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What became of a backend."""

    name: str
    varied: tuple[str, ...]
    same: bool


def rendered(rows: Sequence[Row]) -> str:
    """Return the table in Markdown: one line for each variation, one column for each backend."""
    lines = [f"| variation | what | {' | '.join(row.name for row in rows)} |", "|---" * (len(rows) + 2) + "|"]
    for variation in VARIATIONS:
        cells = [_word(row, variation.name) for row in rows]
        lines.append(f"| `{variation.name}` | {variation.what} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _word(row: Row, variation: str) -> str:
    if variation not in row.varied:
        return "not varied"
    return "same" if row.same else "differs"
