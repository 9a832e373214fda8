"""hipcc and its ROCm."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from builder.errors import NotHereError, ToolError
from builder.toolchain.tool import Search, Tool, require_release

PLATFORM: Final = {"HIP_PLATFORM": "amd"}
"""What hipcc and hipconfig have to be told: where they see nvcc and no clang on PATH, they choose NVIDIA."""
_SYSTEM_ROCM = Path("/opt/rocm")


def find(search: Search, *, toolkit: str | None) -> Tool:
    """Return the hipcc of ROCM_PATH, of the system or of PATH.

    Raises:
        NotHereError: there is none, or it is of another release than `toolkit`.
        ToolError: it does not say its version.
    """
    homes = [Path(search.environ[name]) for name in ("ROCM_PATH", "ROCM_HOME") if search.environ.get(name)]
    candidates = [home / "bin/hipcc" for home in (*homes, _SYSTEM_ROCM)]
    hipcc = next((path for path in candidates if path.is_file()), None) or search.which("hipcc")
    if hipcc is not None and not (hipcc.parent.parent / "include/hip").is_dir():
        hipcc = hipcc.resolve()  # a link that leads into a ROCm
    if hipcc is None:
        raise NotHereError(
            "no ROCm: looked at ROCM_PATH, /opt/rocm and hipcc on PATH",
            help="install ROCm, or set ROCM_PATH to it; in CI use a ROCm container",
        )
    said = search.run(hipcc, "--version", variables=PLATFORM)
    match = re.search(r"^HIP version: ([0-9]+\.[0-9]+)", said, re.MULTILINE)
    if match is None:
        raise ToolError(f"'{hipcc}' does not say its version", help="set ROCM_PATH to a ROCm")
    require_release("the ROCm with hipcc", hipcc, found=match[1], toolkit=toolkit, remedy="set ROCM_PATH to ROCm")
    version = " ".join(line.strip() for line in said.splitlines()[:2])
    return Tool(path=hipcc, version=version, digest=search.digest_all([hipcc.resolve(), *_hip_parts(said)]))


def _hip_parts(said: str) -> Iterator[Path]:
    """Yield the files that hipcc uses, from its own output: clang and the libraries of device code."""
    folder = re.search(r"^InstalledDir: (.+)$", said, re.MULTILINE)
    major = re.search(r"clang version ([0-9]+)", said)
    if folder is None or major is None:
        return
    base = Path(folder[1].strip())
    # A distribution has several clangs beside each other: the one of this version, if it is named.
    names = (base / f"clang-{major[1]}", base / "clang")
    yield from (path.resolve() for path in names[:1] if path.is_file())
    yield from (path.resolve() for path in names[1:] if path.is_file() and not names[0].is_file())
    for root in (base.parent, *base.parent.parents):
        bitcode = sorted((*root.glob("amdgcn/bitcode/*.bc"), *root.glob("lib/*/amdgcn/bitcode/*.bc")))
        if bitcode:
            yield from bitcode
            return
