"""Identify the torch or tvm-ffi that a kernel is built with, by reading its files."""

import ast
import mmap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builder.binary import elf_symbols
from builder.binary.elf_file import ElfError, ElfFile
from builder.config import Backend, Framework
from builder.errors import BuilderError
from builder.hashes import sha256_of

_PYTHON_LIBRARIES = ("libtorch_python", "libtorchbind_test", "libtorch_global_deps")
"""Libraries that no kernel links to: builds of torch that differ only in these count as the same."""
_TOOLKITS = (backend.facts.torch_device for backend in Backend)
_VERSION_FIELDS = tuple(sorted({"git_version", "rocm", *filter(None, _TOOLKITS)}))


class IdentityError(BuilderError):
    """An installation whose identity cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkIdentity:
    """The identity of one build of torch or tvm-ffi."""

    name: str
    version: str
    """The whole version with patch and local tag, such as `2.13.0+cu130`."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """`git_version`, `cuda`, `hip`, `xpu`, the C++11 ABI, platform, and the build-id of each library."""


def identity_of(framework: Framework, site_packages: Path) -> FrameworkIdentity:
    """Identify the build of a framework in `site_packages`.

    A pure-Python kernel has torch; a plain library has no framework.

    Raises:
        IdentityError: the framework is missing, or its files are invalid.
    """
    if framework is Framework.CTYPES:
        return FrameworkIdentity(name="ctypes", version="")
    return (tvm_ffi_identity if framework is Framework.TVM_FFI else torch_identity)(site_packages)


def torch_identity(site_packages: Path) -> FrameworkIdentity:
    """Identify the torch in `site_packages` by its files, without importing it.

    Raises:
        IdentityError: torch is missing, or its files are invalid.
    """
    root = site_packages / "torch"
    try:
        values = _constants((root / "version.py").read_text(encoding="utf-8"))
        version = values["__version__"]
    except (OSError, SyntaxError, ValueError, KeyError) as error:
        raise IdentityError(
            f"no torch in '{site_packages}': {error}", help="install torch there, or build with isolation"
        ) from error
    facts = {name: values[name] for name in _VERSION_FIELDS if values.get(name) not in (None, "None", "")}
    libraries = [path for pattern in ("libtorch*", "libc10*") for path in (root / "lib").glob(pattern)]
    facts |= _build_ids(path for path in libraries if not path.name.startswith(_PYTHON_LIBRARIES))
    facts |= _abi(root)
    return FrameworkIdentity(name="torch", version=version, facts=facts)


def tvm_ffi_identity(site_packages: Path) -> FrameworkIdentity:
    """Identify the tvm-ffi in `site_packages` by its files.

    Raises:
        IdentityError: tvm-ffi is missing.
    """
    found = sorted(site_packages.glob("apache_tvm_ffi-*.dist-info"))
    if not found:
        raise IdentityError(f"no tvm-ffi in '{site_packages}'", help="install apache-tvm-ffi there")
    facts = _build_ids((site_packages / "tvm_ffi" / "lib").glob("*tvm_ffi*"))
    version = found[0].name.removeprefix("apache_tvm_ffi-").removesuffix(".dist-info")
    return FrameworkIdentity(name="tvm-ffi", version=version, facts=facts)


def _build_ids(libraries: Iterable[Path]) -> dict[str, str]:
    return {f"build-id {path.name}": file_identity(path) for path in sorted(libraries) if path.is_file()}


def _constants(text: str) -> dict[str, str]:
    """Return the constants that a module assigns, without running the module."""
    values: dict[str, str] = {}
    for node in ast.parse(text).body:
        match node:
            case ast.Assign(targets=[*targets], value=ast.Constant(value=value)):
                values |= {target.id: str(value) for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value)):
                values[name] = str(value)
    return values


def python_of_torch(site_packages: Path) -> str:
    """Return the Python and the system of torch's own extension, such as `cpython-311-x86_64-linux-gnu`."""
    found = sorted(path for path in (site_packages / "torch").glob("_C.*") if path.suffix in (".so", ".pyd"))
    return found[-1].name.removeprefix("_C.").removesuffix(found[-1].suffix) if found else ""


def _abi(root: Path) -> dict[str, str]:
    """Return the platform and the C++11-ABI flag, from the symbols of c10, or else from torch's CMake config."""
    known = _elf_of(root / "lib/libc10.so")
    flag = None if known is None else _linked_abi(known)
    if flag is None:  # newer versions of torch do not pass the flag to users
        config = root / "share/cmake/Torch/TorchConfig.cmake"
        text = config.read_text(encoding="utf-8", errors="replace") if config.is_file() else ""
        flag = next((value for value in ("0", "1") if f"_GLIBCXX_USE_CXX11_ABI={value}" in text), None)
    platform = {} if known is None else {"platform": known.machine}
    return platform if flag is None else {**platform, "cxx11-abi": flag}


def _linked_abi(library: ElfFile) -> str | None:
    """Determine the flag from mangled names: `std::string` is `__cxx11` in one ABI and `Ss` in the other."""
    try:
        names = [
            symbol.name for symbol in elf_symbols.symbols(library, library.strings) if symbol.name.startswith("_ZN")
        ]
    except ElfError:
        return None
    if any("7__cxx1112basic_string" in name for name in names):
        return "1"
    return "0" if any(name.startswith("_ZN3c10") and "Ss" in name for name in names) else None


def file_identity(path: Path) -> str:
    """Return a library's build-id, or the sha256 of its content without one."""
    known = _elf_of(path)
    try:
        build_id = None if known is None else known.build_id
    except ElfError:
        build_id = None
    return build_id or f"sha256:{sha256_of(path)}"


def _elf_of(path: Path) -> ElfFile | None:
    """Map a library and read its headers; None if it is damaged or not an ELF library."""
    try:
        with path.open("rb") as file:
            return ElfFile(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):
        return None
