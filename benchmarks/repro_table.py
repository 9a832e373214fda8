"""The table variation by backend of the documentation."""

from collections.abc import Sequence
from dataclasses import dataclass

from builder.repro.variations import VARIATIONS

START, END = "<!-- table: benchmarks/repro.py table --write -->", "<!-- end of table -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A kernel and a variant that stand for a backend."""

    kernel: str
    variant: str
    pinned: bool = True
    """Whether all of it is pinned; otherwise the user brings an environment."""


BACKENDS = {
    "cpu, classic": Example(kernel="examples/relu", variant="torch213-cxx11-cpu-x86_64-linux"),
    "cpu, stable ABI": Example(kernel="tests/data/kernels/tiny", variant="torch-stable-abi210-cpu-x86_64-linux"),
    "cuda, classic": Example(kernel="tests/data/kernels/classic", variant="torch213-cxx11-cu130-x86_64-linux"),
    "cuda, stable ABI": Example(
        kernel="tests/data/kernels/everywhere", variant="torch-stable-abi210-cu130-x86_64-linux"
    ),
    "hip, stable ABI": Example(
        kernel="tests/integration/kernels/scale-hip", variant="torch-stable-abi210-rocm71-x86_64-linux", pinned=False
    ),
    "noarch": Example(kernel="examples/silu-and-mul", variant="torch-cpu"),
    "tvm-ffi": Example(kernel="examples/relu-tvm-ffi", variant="tvm-ffi01-cpu-x86_64-linux"),
}
"""Name of a backend → what stands for it on x86_64-linux."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The result for a backend."""

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
