"""nvcc and its toolkit."""

import os
import re
from pathlib import Path

from builder.errors import NotHereError, ToolError
from builder.toolchain.tool import Search, Tool, require_release

_SYSTEM_CUDA = Path("/usr/local/cuda")
_CUDA_PARTS = (
    *("bin/ptxas", "bin/fatbinary", "bin/cudafe++", "bin/nvlink", "nvvm/bin/cicc", "bin/nvcc.profile"),
    *("nvvm/libdevice/libdevice.10.bc", "include/cuda_runtime_api.h", "include/cuda_fp16.hpp"),
)


def find(search: Search, *, toolkit: str | None, root: Path | None) -> Tool:
    """Return the nvcc of `root`, of CUDA_HOME, of PATH or of the system.

    Raises:
        NotHereError: there is none, or it is of another release than `toolkit`.
        ToolError: it does not say its version.
    """
    nvcc = _nvcc(search, root)
    if nvcc is None:
        raise NotHereError(
            "no CUDA toolkit: looked at CUDA_HOME, CUDA_PATH, nvcc on PATH and /usr/local/cuda",
            help="CUDA 13 and newer come as pinned wheels by themselves; for older ones set CUDA_HOME",
        )
    match = re.search(r"release ([0-9]+\.[0-9]+), V([0-9.]+)", search.run(nvcc, "--version"))
    if match is None:
        raise ToolError(f"'{nvcc}' does not say its version", help="set CUDA_HOME to a CUDA toolkit")
    base = nvcc.parent.parent
    require_release("the CUDA toolkit", base, found=match[1], toolkit=toolkit, remedy="set CUDA_HOME to CUDA")
    parts = [nvcc, *(base / name for name in _CUDA_PARTS), *_parts_behind(search, nvcc)]
    return Tool(path=nvcc, version=match[2], digest=search.digest_all(part for part in parts if part.is_file()))


def _nvcc(search: Search, root: Path | None) -> Path | None:
    homes = [root, *(Path(search.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if search.environ.get(name))]
    for home in homes:
        if home is not None and (home / "bin/nvcc").is_file():
            return home / "bin/nvcc"
    found = search.which("nvcc")
    candidates = [None if found is None else _real_nvcc(search, found), _SYSTEM_CUDA / "bin/nvcc"]
    return next((nvcc for nvcc in candidates if nvcc is not None and nvcc.is_file()), None)


def _real_nvcc(search: Search, nvcc: Path) -> Path | None:
    """Return the nvcc behind a wrapper script: a wrapper's folder is no toolkit and misleads CMake.

    That of Debian is one of /usr, which is the toolkit: its nvcc.profile has no TOP.
    """
    if (nvcc.resolve().parent.parent / "nvvm").is_dir():
        return nvcc.resolve()
    top = _says(search, nvcc).get("TOP")
    if top is not None:
        return Path(top).resolve() / "bin/nvcc"
    return nvcc if (nvcc.parent.parent / "include/cuda_runtime_api.h").is_file() else None


def _parts_behind(search: Search, nvcc: Path) -> list[Path]:
    """Return what Debian's nvcc, a script, runs and reads that is not in the toolkit's own places."""
    if (nvcc.parent.parent / "nvvm").is_dir():
        return []
    said = _says(search, nvcc)
    here, libdevice = said.get("_HERE_"), said.get("NVVMIR_LIBRARY_DIR")
    parts = [] if here is None else [Path(here) / name for name in ("nvcc", "cicc", "nvcc.profile")]
    return parts if libdevice is None else [*parts, Path(libdevice) / "libdevice.10.bc"]


def _says(search: Search, nvcc: Path) -> dict[str, str]:
    """Return the variables that nvcc says it runs with."""
    text = search.run(nvcc, "--dryrun", "-x", "cu", "-E", os.devnull)
    return {name: value.strip() for name, value in re.findall(r"^#\$ (\w+)=(.*)$", text, re.MULTILINE)}
