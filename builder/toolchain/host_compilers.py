"""Which C++ compilers nvcc takes: a newer one is refused here, before anything is fetched or compiled for it."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from builder import toml
from builder.config import Version
from builder.errors import NotHereError
from builder.resources import DATA
from builder.toolchain import cross, cxx
from builder.toolchain.tool import Search

_CLANG = re.compile(r"clang version (\d+)")
_GCC = re.compile(r"\) (\d+)\.\d+")


@cache
def _table() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = toml.loads((DATA / "host-compilers.toml").read_text(encoding="utf-8"))["cuda"]
    return found


def newest(toolkit: str) -> Mapping[str, int]:
    """Return the newest `gcc` and `clang` that nvcc of a release of CUDA takes; nothing where that was not measured."""
    return next(
        (
            {name: entry[name] for name in ("gcc", "clang")}
            for entry in _table()
            if Version(toolkit) >= Version(entry["since"])
        ),
        {},
    )


def require(search: Search, toolkit: str, *, target: str | None = None) -> None:
    """Refuse a C++ compiler that is newer than nvcc takes.

    Args:
        search: Where the compiler is looked for.
        toolkit: The release of CUDA, such as `13.0`.
        target: The system that is compiled for, where it is another than this machine's.

    Raises:
        NotHereError: it is newer, or there is none.
    """
    compiler = cxx.find(search) if target is None else cross.find(search, target)
    said = search.first_line(compiler, "--version")
    for kind, pattern in (("clang", _CLANG), ("gcc", _GCC)):
        found = pattern.search(said)
        if found is None:
            continue
        limit = newest(toolkit).get(kind)
        if limit is not None and int(found[1]) > limit:
            name = "clang++" if kind == "clang" else "g++"
            way = f"set CXX={name}-{limit} where that is installed, or " if target is None else ""
            raise NotHereError(
                f"nvcc of CUDA {toolkit} takes {name} up to {limit}, and '{compiler}' is {found[1]}",
                help=f"{way}pass --toolchain pinned",
            )
        return
