"""What a build depends on, as a typed record: torch, the toolchain, the project; and the key made of it."""

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection

from builder.errors import BuilderError

_PYTHON_LIBRARIES = ("libtorch_python", "libtorchbind_test", "libtorch_global_deps")
"""Libraries that a kernel of the limited API never links to: another Python's torch is the same torch."""
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
    """`git_version`, `cuda`, `hip`, `xpu`, the C++11 ABI, and the build-id of each library."""


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
    facts["cxx11-abi"] = _cxx11_abi(root)
    libraries = sorted(path for pattern in ("libtorch*", "libc10*") for path in (root / "lib").glob(pattern))
    facts.update(
        (f"build-id {path.name}", file_identity(path))
        for path in libraries
        if path.is_file() and not path.name.startswith(_PYTHON_LIBRARIES)
    )
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


def _cxx11_abi(root: Path) -> str:
    """Return the C++11-ABI flag that torch's CMake config hands to whoever links to it."""
    config = root / "share/cmake/Torch/TorchConfig.cmake"
    text = config.read_text(encoding="utf-8") if config.is_file() else ""
    for value in ("0", "1"):
        if f"_GLIBCXX_USE_CXX11_ABI={value}" in text:
            return value
    return "1"  # torch no longer writes the flag since it has no other ABI


def file_identity(path: Path) -> str:
    """Return a library's build-id, or a sha256 of its content where it has none."""
    return next(_build_ids(path), None) or f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def _build_ids(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        try:
            for section in ELFFile(file).iter_sections():
                if isinstance(section, NoteSection):
                    yield from (
                        str(note["n_desc"]) for note in section.iter_notes() if note["n_type"] == "NT_GNU_BUILD_ID"
                    )
        except (ELFError, ValueError, KeyError):
            return


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
    """Return what differs between a stored record and one to be built, field by field, sorted."""
    old, new = dict(_flat(before)), dict(_flat(asdict(after)))
    return tuple(
        Change(field=name, before=old.get(name), after=new.get(name))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    )


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
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"changed: {', '.join(names[:_SHOWN])}{more}"
