"""The tools of this machine: found, never assumed, and told apart by what they are and not by where."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from builder import distribution
from builder.config import Backend
from builder.errors import NotHereError, ToolError
from builder.reproducible import REACHES_BUILD

CXX_NAMES = ("c++", "g++", "clang++")
_COMPILER_PARTS = ("cc1plus", "as", "ld")
_COMPILER_FILES = ("libstdc++.so", "libgcc.a", "crt1.o", "libc.so.6", "libc_nonshared.a", "libm.so.6")
_ONEAPI_PARTS = (
    *("clang", "clang-linker-wrapper", "clang-offload-bundler", "clang-offload-wrapper", "file-table-tform"),
    *("llvm-foreach", "llvm-link", "llvm-spirv", "spirv-to-ir-wrapper", "sycl-post-link"),
)
_ONEAPI_FILES = ("libsycl.so", "libsycl-devicelib-host.a", "libsycl-crt.bc", "libsycl-cmath.bc", "libsycl-complex.bc")
_SYSTEM_CUDA = Path("/usr/local/cuda")
_SYSTEM_ONEAPI = Path("/opt/intel/oneapi")
_SYSTEM_ROCM = Path("/opt/rocm")
_CUDA_PARTS = (
    *("bin/ptxas", "bin/fatbinary", "bin/cudafe++", "bin/nvlink", "nvvm/bin/cicc", "bin/nvcc.profile"),
    *("nvvm/libdevice/libdevice.10.bc", "include/cuda_runtime_api.h", "include/cuda_fp16.hpp"),
)

Digest = Callable[[Path], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A program, with its version and a digest of what it is."""

    path: Path
    version: str
    digest: str
    """sha256 over the program and the parts it runs, wherever they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The compilers that a cell needs."""

    cxx: Tool
    """For XPU that of oneAPI, which compiles for the device, too."""
    cc: Tool
    cuda: Tool | None = None
    """nvcc; its toolkit is two folders above."""
    hip: Tool | None = None
    """hipcc; its ROCm is two folders above."""
    metal: Tool | None = None
    ocloc: Path | None = None
    """What oneAPI's compiler calls for machine code of GPUs, by its name: its folder must be on PATH."""
    ccache: Path | None = None

    @property
    def identity(self) -> Mapping[str, str]:
        """What the tools are, without their paths; ccache changes no bit and is not in it."""
        tools = {"cxx": self.cxx, "cc": self.cc, "cuda": self.cuda, "hip": self.hip, "metal": self.metal}
        return {
            f"{name}-{fact}": value
            for name, tool in tools.items()
            if tool is not None
            for fact, value in (("version", tool.version), ("digest", tool.digest))
        }


def system() -> str:
    """Return this machine's system, such as `x86_64-linux`."""
    machine = os.uname().machine
    return f"{'aarch64' if machine == 'arm64' else machine}-{'darwin' if sys.platform == 'darwin' else 'linux'}"


def find(
    backend: Backend,
    *,
    environ: Mapping[str, str],
    toolkit: str | None = None,
    toolkit_root: Path | None = None,
    digest: Digest | None = None,
) -> Toolchain:
    """Return the tools for `backend`; `toolkit_root` is a toolkit that came as pinned wheels.

    Raises:
        NotHereError: a tool is missing or of another release; the message says how to get it.
        ToolError: a tool is there and does not work.
    """
    search = _Search(environ=environ, digest=digest or sha256_of)
    cxx = search.oneapi(toolkit=toolkit) if backend is Backend.XPU else search.cxx()
    ocloc = search.ocloc() if backend is Backend.XPU else None
    ccache = search.which("ccache")
    return Toolchain(
        cxx=search.compiler(cxx, oneapi=backend is Backend.XPU, calls=ocloc),
        cc=search.compiler(search.c_compiler(cxx)),
        cuda=search.cuda(toolkit=toolkit, root=toolkit_root) if backend is Backend.CUDA else None,
        hip=search.hip(toolkit=toolkit) if backend is Backend.ROCM else None,
        metal=search.metal() if backend is Backend.METAL else None,
        ocloc=ocloc,
        ccache=None if ccache is None or environ.get("CCACHE_DISABLE") else ccache,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """Where to look for tools, and how to digest them."""

    environ: Mapping[str, str]
    digest: Digest

    @property
    def path(self) -> str:
        return self.environ.get("PATH", os.defpath)

    def which(self, name: str) -> Path | None:
        found = shutil.which(name, path=self.path)
        return None if found is None else Path(found)

    def cxx(self) -> Path:
        wanted = self.environ.get("CXX")
        for name in (wanted,) if wanted else CXX_NAMES:
            found = self.which(name)
            if found is not None:
                return found.resolve()
        if wanted:
            raise NotHereError(f"CXX names '{wanted}', which is not there", help="unset CXX, or name a C++ compiler")
        raise NotHereError(
            f"no C++ compiler: looked for {', '.join(CXX_NAMES)} on PATH",
            help=f"{distribution.installing('g++')}; or set CXX",
        )

    def oneapi(self, *, toolkit: str | None) -> Path:
        """Return icpx: CXX, or where it is found; never what a link leads to, since a driver goes by its name."""
        named = self.environ.get("CXX")
        found = self.which(named) if named else self.in_oneapi("compiler/latest/bin/icpx")
        if found is None and named:
            raise NotHereError(f"CXX names '{named}', which is not there", help="unset CXX, or name icpx")
        if found is None:
            raise NotHereError(
                f"no oneAPI compiler: looked for icpx in ONEAPI_ROOT, in {_SYSTEM_ONEAPI} and on PATH",
                help="install oneAPI and source its setvars.sh, or set ONEAPI_ROOT; in CI use a oneAPI container",
            )
        match = re.search(r"oneAPI DPC\+\+/C\+\+ Compiler ([0-9]+\.[0-9]+)", self.run(found, "--version"))
        if match is None:
            raise NotHereError(
                f"'{found}' is not the C++ compiler of oneAPI, which XPU needs",
                help="unset CXX, or set it to icpx",
            )
        _require_release("the oneAPI compiler", found, found=match[1], toolkit=toolkit, remedy="set ONEAPI_ROOT to")
        return found

    def ocloc(self) -> Path | None:
        return self.in_oneapi("ocloc/latest/bin/ocloc")

    def in_oneapi(self, place: str) -> Path | None:
        """Return a program of oneAPI, or of its name on PATH."""
        homes = [Path(self.environ["ONEAPI_ROOT"])] if self.environ.get("ONEAPI_ROOT") else []
        candidates = [home / place for home in (*homes, _SYSTEM_ONEAPI)]
        return next((path for path in candidates if path.is_file()), None) or self.which(Path(place).name)

    def c_compiler(self, cxx: Path) -> Path:
        """Return the C compiler that came with `cxx`, unless CC names one."""
        wanted = self.environ.get("CC")
        found = self.which(wanted) if wanted else None
        name = cxx.name.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc").replace("icpx", "icx")
        sibling = cxx.with_name(name)
        return found.resolve() if found is not None else sibling if sibling.exists() else cxx

    def compiler(self, path: Path, *, oneapi: bool = False, calls: Path | None = None) -> Tool:
        version = self.first_line(path, "--version")
        target = self.first_line(path, "-dumpmachine")
        programs = (*_COMPILER_PARTS, *(_ONEAPI_PARTS if oneapi else ()))
        files_of = (*_COMPILER_FILES, *(_ONEAPI_FILES if oneapi else ()))
        parts = [self.part(path, f"-print-prog-name={name}") for name in programs]
        parts += [self.part(path, f"-print-file-name={name}") for name in files_of]
        files = [path, *(part for part in (*parts, calls) if part is not None)]
        return Tool(path=path, version=f"{version} ({target})", digest=self.digest_all(files))

    def part(self, compiler: Path, question: str) -> Path | None:
        """Return a part of a compiler; one that does not know it answers with the bare name."""
        answer = self.first_line(compiler, question)
        found = Path(answer) if "/" in answer else self.which(answer) if answer else None
        return found.resolve() if found is not None and found.is_file() else None

    def cuda(self, *, toolkit: str | None, root: Path | None) -> Tool:
        nvcc = self.nvcc(root)
        if nvcc is None:
            raise NotHereError(
                "no CUDA toolkit: looked at CUDA_HOME, CUDA_PATH, nvcc on PATH and /usr/local/cuda",
                help="CUDA 13 and newer come as pinned wheels by themselves; for older ones set CUDA_HOME",
            )
        match = re.search(r"release ([0-9]+\.[0-9]+), V([0-9.]+)", self.run(nvcc, "--version"))
        if match is None:
            raise ToolError(f"'{nvcc}' does not say its version", help="set CUDA_HOME to a CUDA toolkit")
        base = nvcc.parent.parent
        _require_release("the CUDA toolkit", base, found=match[1], toolkit=toolkit, remedy="set CUDA_HOME to CUDA")
        parts = [nvcc, *(base / name for name in _CUDA_PARTS)]
        return Tool(path=nvcc, version=match[2], digest=self.digest_all(part for part in parts if part.is_file()))

    def nvcc(self, root: Path | None) -> Path | None:
        homes = [root, *(Path(self.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if self.environ.get(name))]
        for home in homes:
            if home is not None and (home / "bin/nvcc").is_file():
                return home / "bin/nvcc"
        found = self.which("nvcc")
        candidates = [None if found is None else self.real_nvcc(found), _SYSTEM_CUDA / "bin/nvcc"]
        return next((nvcc for nvcc in candidates if nvcc is not None and nvcc.is_file()), None)

    def real_nvcc(self, nvcc: Path) -> Path | None:
        """Return the nvcc behind a wrapper script: a wrapper's folder is no toolkit and misleads CMake."""
        if (nvcc.resolve().parent.parent / "nvvm").is_dir():
            return nvcc.resolve()
        text = self.run(nvcc, "--dryrun", "-x", "cu", "-E", os.devnull)
        top = re.search(r"^#\$ TOP=(.*)$", text, re.MULTILINE)
        return None if top is None else Path(top[1].strip()).resolve() / "bin/nvcc"

    def hip(self, *, toolkit: str | None) -> Tool:
        homes = [Path(self.environ[name]) for name in ("ROCM_PATH", "ROCM_HOME") if self.environ.get(name)]
        candidates = [home / "bin/hipcc" for home in (*homes, _SYSTEM_ROCM)]
        hipcc = next((path for path in candidates if path.is_file()), None) or self.which("hipcc")
        if hipcc is not None and not (hipcc.parent.parent / "include/hip").is_dir():
            hipcc = hipcc.resolve()  # a link that leads into a ROCm
        if hipcc is None:
            raise NotHereError(
                "no ROCm: looked at ROCM_PATH, /opt/rocm and hipcc on PATH",
                help="install ROCm, or set ROCM_PATH to it; in CI use a ROCm container",
            )
        said = self.run(hipcc, "--version")
        match = re.search(r"^HIP version: ([0-9]+\.[0-9]+)", said, re.MULTILINE)
        if match is None:
            raise ToolError(f"'{hipcc}' does not say its version", help="set ROCM_PATH to a ROCm")
        _require_release("the ROCm with hipcc", hipcc, found=match[1], toolkit=toolkit, remedy="set ROCM_PATH to ROCm")
        version = " ".join(line.strip() for line in said.splitlines()[:2])
        return Tool(path=hipcc, version=version, digest=self.digest_all([hipcc.resolve(), *_hip_parts(said)]))

    def metal(self) -> Tool:
        found = self.which("xcrun")
        said = "" if found is None else self.run(found, "-sdk", "macosx", "--find", "metal").strip()
        if found is None or not Path(said).is_file():
            raise NotHereError(
                "no Metal compiler: xcrun finds no 'metal'",
                help="install Xcode, then its toolchain: xcodebuild -downloadComponent MetalToolchain",
            )
        metal = Path(said)
        parts = [path for path in (metal, metal.with_name("metallib"), metal.with_name("air-lld")) if path.is_file()]
        return Tool(path=metal, version=self.first_line(metal, "--version"), digest=self.digest_all(parts))

    def digest_all(self, files: Iterable[Path]) -> str:
        """Return a sha256 over the contents of `files`, in order and by name, not by place."""
        lines = "".join(f"{path.name} {self.digest(path)}\n" for path in files)
        return hashlib.sha256(lines.encode()).hexdigest()

    def first_line(self, program: Path, argument: str) -> str:
        return next(iter(self.run(program, argument).splitlines()), "")

    def run(self, program: Path, *arguments: str) -> str:
        # What a build sees, its tools are asked with: xcrun and hipcc find others by these.
        seen = {name: self.environ[name] for name in REACHES_BUILD if self.environ.get(name)}
        try:
            done = subprocess.run(
                [program, *arguments],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                stdin=subprocess.DEVNULL,
                env={"PATH": self.path, "LC_ALL": "C", **seen},
            )
        except OSError as error:
            raise ToolError(f"cannot run '{program}': {error.strerror}") from error
        return done.stdout + done.stderr


def _require_release(what: str, path: Path, *, found: str, toolkit: str | None, remedy: str) -> None:
    """Refuse a toolkit of another release than the cell is for: its wheel would not be what its name says."""
    if toolkit is not None and found != ".".join(toolkit.split(".")[:2]):
        raise NotHereError(
            f"{what} at '{path}' is {found}; this cell needs {toolkit}",
            help=f"{remedy} {toolkit}, or name a cell of {found}, if there is one",
        )


def _hip_parts(said: str) -> Iterator[Path]:
    """Yield what hipcc runs, by what it says of itself: clang and the libraries of device code."""
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


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
