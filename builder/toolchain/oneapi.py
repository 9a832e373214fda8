"""The compiler of oneAPI, and ocloc, which it calls for machine code of GPUs."""

import re
from pathlib import Path

from builder.errors import NotHereError
from builder.toolchain.tool import Search, require_release

PROGRAMS = (
    *("clang", "clang-linker-wrapper", "clang-offload-bundler", "clang-offload-wrapper", "file-table-tform"),
    *("llvm-foreach", "llvm-link", "llvm-spirv", "spirv-to-ir-wrapper", "sycl-post-link"),
)
FILES = ("libsycl.so", "libsycl-devicelib-host.a", "libsycl-crt.bc", "libsycl-cmath.bc", "libsycl-complex.bc")
_SYSTEM_ONEAPI = Path("/opt/intel/oneapi")


def find(search: Search, *, toolkit: str | None) -> Path:
    """Return icpx, from CXX or where it is found; links are not resolved, because the driver depends on its name.

    Raises:
        NotHereError: there is none, or it is of another release than `toolkit`.
    """
    named = search.environ.get("CXX")
    found = search.which(named) if named else _in_oneapi(search, "compiler/latest/bin/icpx")
    if found is None and named:
        raise NotHereError(f"CXX names '{named}', which is not there", help="unset CXX, or name icpx")
    if found is None:
        raise NotHereError(
            f"no oneAPI compiler: looked for icpx in ONEAPI_ROOT, in {_SYSTEM_ONEAPI} and on PATH",
            help="install oneAPI and source its setvars.sh, or set ONEAPI_ROOT; in CI use a oneAPI container",
        )
    match = re.search(r"oneAPI DPC\+\+/C\+\+ Compiler ([0-9]+\.[0-9]+)", search.run(found, "--version"))
    if match is None:
        raise NotHereError(
            f"'{found}' is not the C++ compiler of oneAPI, which XPU needs",
            help="unset CXX, or set it to icpx",
        )
    require_release("the oneAPI compiler", found, found=match[1], toolkit=toolkit, remedy="set ONEAPI_ROOT to")
    return found


def ocloc(search: Search) -> Path | None:
    """Return the compiler for machine code of GPUs, which icpx calls by its name."""
    return _in_oneapi(search, "ocloc/latest/bin/ocloc")


def _in_oneapi(search: Search, place: str) -> Path | None:
    """Return a program of oneAPI, or of its name on PATH."""
    homes = [Path(search.environ["ONEAPI_ROOT"])] if search.environ.get("ONEAPI_ROOT") else []
    candidates = [home / place for home in (*homes, _SYSTEM_ONEAPI)]
    return next((path for path in candidates if path.is_file()), None) or search.which(Path(place).name)
