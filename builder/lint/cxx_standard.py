"""Find flags for an older C++ standard than torch's headers need."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from builder import toml
from builder.config import Version
from builder.config.text import KeyPath
from builder.errors import Problem
from builder.kernel import Kernel
from builder.matrix import Cell, rows, select
from builder.resources import DATA

_KEYS = ("cxx_flags", "cuda_flags", "hip_flags", "sycl_flags")
_ASKED = re.compile(r"(?:^|[\s=,])--?std[= ](?:c|gnu)\+\+(\d\w)$")
_DRAFTS = {"98": 3, "03": 3, "0x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "2c": 26}
_MOST_ROWS = 4
"""The most rows that a finding names; the rest is counted."""

Flags = tuple[KeyPath, tuple[str, ...], list[Cell]]
"""The place of flags in the config, the flags, and the cells that they compile."""


@lru_cache
def standards() -> tuple[tuple[Version, int], ...]:
    """Return each C++ standard of torch's headers with the first torch that needs it, newest first."""
    table: dict[str, Any] = toml.loads((DATA / "cpp-extension.toml").read_text(encoding="utf-8"))
    return tuple((Version(entry["torch"]), int(entry["cxx"])) for entry in table["standard"])


def standard(torch: Version) -> int:
    """Return the C++ standard of a torch's headers; for an older torch than the table has, the oldest one."""
    return next((cxx for since, cxx in standards() if since <= torch), standards()[-1][1])


def check(kernel: Kernel) -> Iterator[Problem]:
    """Report flags with which cells of a newer torch do not compile, with the rows of these cells."""
    for path, flags, cells in _flags(kernel):
        for index, flag in enumerate(flags):
            asked = _asked(flags[index - 1] if index else "", flag)
            failing = [cell for cell in cells if asked is not None and asked < standard(_torch(cell))]
            if not failing:
                continue
            versions = sorted({_torch(cell) for cell in failing})
            since = next(since for since, _ in standards() if since <= versions[-1])
            names = list(dict.fromkeys(cell.variant for cell in failing))
            named = ", ".join(names)
            if len(names) > _MOST_ROWS:
                named = f"{', '.join(names[: _MOST_ROWS - 1])} and {len(names) - _MOST_ROWS + 1} more"
            message = (
                f"the headers of torch need C++{standard(versions[-1])} since {since}, and '{flag}' asks for less: "
                f"cells of torch {', '.join(map(str, versions))} do not compile: {named}"
            )
            remedy = "remove the flag: each cell is compiled as the headers of its torch need it"
            yield kernel.source.problem("B129", message, path=(*path, index), severity="warning", help=remedy)


def _asked(before: str, flag: str) -> int | None:
    """Return the C++ standard that a flag sets, which may be the value of the flag before it."""
    text = f"{before} {flag}" if before.lstrip("-") == "std" else flag
    match = _ASKED.search(text)
    if match is None:
        return None
    return _DRAFTS.get(match[1]) or (int(match[1]) if match[1].isdigit() else None)


def _torch(cell: Cell) -> Version:
    if cell.torch is None:
        raise AssertionError(cell)
    return cell.torch


def _flags(kernel: Kernel) -> Iterator[Flags]:
    """Yield the flags of sources that include torch's unstable headers."""
    config = kernel.config
    if config.torch is None:
        return
    # The stable ABI's headers need only C++17.
    cells = [
        cell
        for cell in select(config, rows(), unbundled=True)
        if cell.torch is not None and config.stable_abi(cell.backend) is None
    ]
    for path, table in config.bindings():
        yield (*path, "cxx-flags"), table.cxx_flags, cells
        yield from (((*path, "file-flags", str(file)), flags, cells) for file, flags in table.file_flags.items())
    for name, component in config.kernel.items():
        if "torch" in component.depends:
            own = [cell for cell in cells if cell.backend is component.backend]
            path = ("kernel", name)
            yield from (((*path, key.replace("_", "-")), getattr(component, key, ()), own) for key in _KEYS)
            yield from (((*path, "file-flags", str(file)), flags, own) for file, flags in component.file_flags.items())
