"""Flags that ask for an older C++ than the headers of torch have."""

import re
from collections.abc import Iterator

from builder.config import Backend, Version
from builder.config.text import KeyPath
from builder.errors import Problem
from builder.kernel import Kernel
from builder.matrix import rows, select
from builder.wording import listed

CXX20_SINCE = Version("2.12")
"""The first torch whose headers need C++20; `cmake/torch/extension.cmake` sets the standard by the same version."""

_KEYS = ("cxx_flags", "cuda_flags", "hip_flags", "sycl_flags")
_OLDER = re.compile(r"--?std[= ](?:c|gnu)\+\+(?:98|03|0x|11|1y|14|1z|17)")


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield the flags with which cells of a newer torch do not compile."""
    failing = _failing(kernel)
    if not failing:
        return
    for path, flags in _flags(kernel, failing):
        for index, flag in enumerate(flags):
            if _OLDER.fullmatch(flag):
                versions = sorted({version for backend in failing for version in failing[backend]})
                yield kernel.source.problem(
                    "B129",
                    f"the headers of torch need C++20 since {CXX20_SINCE}, and '{flag}' asks for less: cells of "
                    f"torch {listed([str(version) for version in versions])} do not compile",
                    path=(*path, index),
                    severity="warning",
                    help="remove the flag: each cell is compiled as the headers of its torch need it",
                )


def _failing(kernel: Kernel) -> dict[Backend, frozenset[Version]]:
    """Return the versions of torch that need C++20, of the cells of each backend that compiles with their headers."""
    config = kernel.config
    if config.torch is None:
        return {}
    found: dict[Backend, frozenset[Version]] = {}
    for cell in select(config, rows(), unbundled=True):
        # What the stable ABI has of headers is C++17.
        if cell.torch is not None and cell.torch >= CXX20_SINCE and config.stable_abi(cell.backend) is None:
            found[cell.backend] = found.get(cell.backend, frozenset()) | {cell.torch}
    return found


def _flags(kernel: Kernel, failing: dict[Backend, frozenset[Version]]) -> Iterator[tuple[KeyPath, tuple[str, ...]]]:
    config = kernel.config
    yield from (((*path, "cxx-flags"), table.cxx_flags) for path, table in config.bindings())
    for name, component in config.kernel.items():
        if component.backend in failing and "torch" in component.depends:
            for key in _KEYS:
                yield ("kernel", name, key.replace("_", "-")), getattr(component, key, ())
