"""What a build depends on, as a typed record: torch, the toolchain, the project; and the key made of it."""

import ast
import hashlib
import json
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from builder import __version__
from builder.binary import elf_symbols
from builder.errors import BuilderError
from builder.toolchain import sha256_of

_PYTHON_LIBRARIES = ("libtorch_python", "libtorchbind_test", "libtorch_global_deps")
"""Libraries that a kernel never links to: another Python's torch is the same torch."""
_DECIDES_BYTES = (
    "build.py",
    "cudafe.py",
    "environment.py",
    "finish.py",
    "identity.py",
    "job.py",
    "metadata.py",
    "reproducible.py",
    "sandbox/__init__.py",
    "sandbox/contents.py",
    "sandbox/enter.py",
    "sandbox/room.py",
    "wheel.py",
)
"""Modules whose work shows nowhere else in the record; what a renderer does shows in the project."""
_NAMED = ("CMakeLists.txt", "_ops.py", "metadata.json", "metadata.json.in")
"""Rendered files that name the ops, and so change with any file of the project."""
_VERSION_FIELDS = ("cuda", "git_version", "hip", "rocm", "xpu")


class IdentityError(BuilderError):
    """An installation whose identity cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkIdentity:
    """One build of torch or tvm-ffi, told apart from every other."""

    name: str
    version: str
    """The whole version with patch and local tag, such as `2.13.0+cu130`."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """`git_version`, `cuda`, `hip`, `xpu`, the C++11 ABI, platform, and the build-id of each library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """Everything that decides the bytes of a wheel; its digest is the build key."""

    builder: str
    variant: str
    wheel: Mapping[str, str]
    """File name parts and metadata that are not in the rendered project."""
    project: Mapping[str, str]
    """sha256 of each file of the rendered project: sources and headers included."""
    framework: Mapping[str, object]
    pins: str
    """Digest of the pinned wheels; empty without isolation."""
    toolchain: Mapping[str, str]
    environment: Mapping[str, str]
    """Variables that reach the compilers."""

    def to_json(self) -> str:
        """Return the record as canonical JSON."""
        return json.dumps(asdict(self), sort_keys=True, indent=1, ensure_ascii=False)

    @property
    def key(self) -> str:
        """The build key: 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def torch_identity(site_packages: Path) -> FrameworkIdentity:
    """Read which torch is in `site_packages`, from its files, without importing it.

    Raises:
        IdentityError: there is no torch, or its files are not those of a torch.
    """
    root = site_packages / "torch"
    try:
        values = _assignments((root / "version.py").read_text(encoding="utf-8"))
        version = values["__version__"]
    except (OSError, SyntaxError, ValueError, KeyError) as error:
        raise IdentityError(
            f"no torch in '{site_packages}': {error}", help="install torch there, or build with isolation"
        ) from error
    facts = {name: values[name] for name in _VERSION_FIELDS if values.get(name) not in (None, "None", "")}
    libraries = sorted(path for pattern in ("libtorch*", "libc10*") for path in (root / "lib").glob(pattern))
    facts.update(
        (f"build-id {path.name}", file_identity(path))
        for path in libraries
        if path.is_file() and not path.name.startswith(_PYTHON_LIBRARIES)
    )
    facts.update(_abi(root))
    return FrameworkIdentity(name="torch", version=version, facts=facts)


def tvm_ffi_identity(site_packages: Path) -> FrameworkIdentity:
    """Read which tvm-ffi is in `site_packages`, from its files.

    Raises:
        IdentityError: there is none.
    """
    found = sorted(site_packages.glob("apache_tvm_ffi-*.dist-info"))
    if not found:
        raise IdentityError(f"no tvm-ffi in '{site_packages}'", help="install apache-tvm-ffi there")
    libraries = sorted((site_packages / "tvm_ffi" / "lib").glob("*tvm_ffi*"))
    facts = {f"build-id {path.name}": file_identity(path) for path in libraries if path.is_file()}
    version = found[0].name.removeprefix("apache_tvm_ffi-").removesuffix(".dist-info")
    return FrameworkIdentity(name="tvm-ffi", version=version, facts=facts)


def _assignments(text: str) -> dict[str, str]:
    """Return the constants that a module assigns; the module is not run."""
    values: dict[str, str] = {}
    for node in ast.parse(text).body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(node.value, ast.Constant):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        values.update((target.id, str(node.value.value)) for target in targets if isinstance(target, ast.Name))
    return values


def python_of_torch(site_packages: Path) -> str:
    """Return which Python and system torch's own extension is for, such as `cpython-311-x86_64-linux-gnu`."""
    found = sorted(path for path in (site_packages / "torch").glob("_C.*") if path.suffix in (".so", ".pyd"))
    return found[-1].name.removeprefix("_C.").removesuffix(found[-1].suffix) if found else ""


def _abi(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the platform and the C++11-ABI flag, as the symbols of c10 have them or else torch's CMake config."""
    known = _elf_of(root / "lib/libc10.so")
    if known is not None:
        yield "platform", known.machine
    flag = _declared_abi(root) if known is None else _linked_abi(known) or _declared_abi(root)
    if flag is not None:
        yield "cxx11-abi", flag


def _linked_abi(library: elf_symbols.Elf) -> str | None:
    """Tell the flag from the mangled names: `std::string` is `__cxx11` in one ABI and `Ss` in the other."""
    try:
        names = [symbol.name for symbol in library.symbols(library.strings) if symbol.name.startswith("_ZN")]
    except elf_symbols.ElfError:
        return None
    if any("7__cxx1112basic_string" in name for name in names):
        return "1"
    return "0" if any(name.startswith("_ZN3c10") and "Ss" in name for name in names) else None


def _declared_abi(root: Path) -> str | None:
    """Return the flag that torch's CMake config hands to whoever links to it; newer ones hand none."""
    config = root / "share/cmake/Torch/TorchConfig.cmake"
    text = config.read_text(encoding="utf-8", errors="replace") if config.is_file() else ""
    return next((value for value in ("0", "1") if f"_GLIBCXX_USE_CXX11_ABI={value}" in text), None)


def file_identity(path: Path) -> str:
    """Return a library's build-id, or a sha256 of its content where it has none."""
    known = _elf_of(path)
    try:
        build_id = None if known is None else known.build_id
    except elf_symbols.ElfError:
        build_id = None
    return build_id or f"sha256:{sha256_of(path)}"


def _elf_of(path: Path) -> elf_symbols.Elf | None:
    """Map a library and read its headers; None for what is not an ELF library, or a damaged one."""
    try:
        with path.open("rb") as file:
            return elf_symbols.Elf(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):
        return None


@cache
def of_builder() -> str:
    """Return the version of `builder` and a digest of what decides bytes: a checkout is not a release."""
    package = Path(__file__).parent
    digests = "".join(f"{name} {sha256_of(package / name)}\n" for name in _DECIDES_BYTES)
    return f"{__version__} sha256:{hashlib.sha256(digests.encode()).hexdigest()}"


def of_build_tools() -> dict[str, str]:
    """Return the versions of what configures a build without isolation; with it, the pins say them."""
    return {name: _version_of(name) for name in ("cmake", "scikit-build-core")}


def _version_of(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:  # a system's own CMake, as conda has it
        return "not a package"


def file_digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the sha256 of each file of a rendered project."""
    return {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of the record that differs."""

    field: str
    before: object
    after: object


def changes(before: Mapping[str, Any], after: BuildRecord) -> tuple[Change, ...]:
    """Return what differs between a stored record and one to be built, field by field, causes first, then sorted."""
    old, new = dict(_flat(before)), dict(_flat(asdict(after)))
    return tuple(
        Change(field=name, before=old.get(name), after=new.get(name))
        for name in sorted({*old, *new}, key=lambda name: (_follows(name), name))
        if old.get(name) != new.get(name)
    )


def _follows(name: str) -> bool:
    """Whether a field is a rendered file with the name of the ops, which is made of the project's content."""
    return name.startswith("project: ") and name.removeprefix("project: ").rpartition("/")[2] in _NAMED


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", inner


_SHOWN = 3


def summary(before: Mapping[str, Any], after: BuildRecord) -> str:
    """Say in a line which fields changed since the last build."""
    names = [change.field for change in changes(before, after)]
    if not names:
        return "the store no longer has it"
    causes = [name for name in names if not _follows(name)] or names
    more = f" and {len(causes) - _SHOWN} more" if len(causes) > _SHOWN else ""
    follow = len(names) - len(causes)
    named = f"; {follow} rendered {'file has' if follow == 1 else 'files have'} its new name" if follow else ""
    return f"changed: {', '.join(causes[:_SHOWN])}{more}{named}"
