"""Complete a CUDA toolkit from pinned wheels with the links that CMake and linkers look for."""

import re
from pathlib import Path

_SONAME = re.compile(r"(lib.+\.so)\.[0-9][0-9.]*")


def cuda_root(site_packages: Path) -> Path | None:
    """Return the CUDA toolkit that wheels installed into an environment; None without one."""
    found = sorted(site_packages.glob("nvidia/cu[0-9]*/bin/nvcc"))
    return found[-1].parent.parent if found else None


def complete(root: Path) -> None:
    """Add the links `lib64` and `libX.so` that a toolkit from wheels lacks; running it again changes nothing.

    Wheels cannot contain links. The links go into the tree itself and not into a copy made of links, since nvcc follows
    links to itself and looks for its parts there.
    """
    _link(root / "lib64", "lib")
    for library in sorted((root / "lib").glob("lib*.so.*")):
        match = _SONAME.fullmatch(library.name)
        if match is not None:
            _link(library.with_name(match[1]), library.name)


def _link(path: Path, target: str) -> None:
    if not path.exists():
        path.unlink(missing_ok=True)  # a dangling link
        path.symlink_to(target)
