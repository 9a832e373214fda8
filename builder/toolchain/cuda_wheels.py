"""A CUDA toolkit from pinned wheels, completed with the links that CMake and linkers look for."""

import re
from pathlib import Path

_SONAME = re.compile(r"(lib.+\.so)\.[0-9][0-9.]*")


def cuda_root(site_packages: Path) -> Path | None:
    """Return the CUDA toolkit that wheels installed into an environment, if there is one."""
    found = sorted(site_packages.glob("nvidia/cu[0-9]*/bin/nvcc"))
    return found[-1].parent.parent if found else None


def complete(root: Path) -> None:
    """Add the links that the wheels of a toolkit lack, `lib64` and `libX.so`; running it again changes nothing.

    Wheels cannot hold links. They go into the tree itself and not into a copy made of links, because nvcc follows links
    to itself and looks for its parts there.
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
