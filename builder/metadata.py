"""Read and write metadata.json, the file that describes a kernel's package to clients and to the audit."""

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from builder import __version__, codec, json_text, untrusted
from builder.config import Backend, Config
from builder.config.source_tables import ExtensionName
from builder.config.v5 import FunctionBudget, KernelDependency
from builder.hashes import base64_sha256

T = TypeVar("T")
METADATA_FILE = "metadata.json"
SIGNATURE_FILE = "metadata.json.sigstore"
"""The signature of metadata.json, which the hub's client verifies."""
ID = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)
"""The id of a library: a Python name."""
ID_KEY = "id"
ARCHS_KEY = "backend.archs"
QUICK_KEY = "build.archs"
_MOST_BUDGETS = 256
_COMPLETED = {"archs": "@KERNEL_ARCHITECTURES@", "extensions": "@KERNEL_EXTENSIONS@"}
"""Variables of CMake for the architectures that it compiled, and for the extensions that the package has."""
_DEPENDS_SINCE = "0.17.0"
"""The first client that loads the kernels which another kernel depends on."""
_OF_CONFIG = (
    "name", "version", "kernels-minver", "license", "upstream", "source", "python-depends", "kernel-depends",
)  # fmt: skip
_KINDS = {str: "no text", int: "no whole number", list: "no list", dict: "no table"}
_TYPES: Mapping[str, type] = {
    "name": str, "id": str, "version": int, "kernels-minver": str, "license": str, "upstream": str, "source": str,
    "python-depends": list, "backend": dict, "exports": list, "digest": dict, "provenance": dict, "build": dict,
}  # fmt: skip


def is_digested(name: str) -> bool:
    """Whether the digest of a package covers a file: all but bytecode, metadata.json itself and its signature."""
    return name not in (METADATA_FILE, SIGNATURE_FILE) and not name.endswith((".pyc", ".pyo"))


def is_extension(name: object, ops: object) -> bool:
    """Whether an entry of `extensions` has a valid name and a valid library id."""
    known = isinstance(name, str) and ExtensionName.matches(name)
    return known and isinstance(ops, str) and ID.fullmatch(ops) is not None


def dependency_table(kernel: KernelDependency) -> dict[str, Any]:
    """Return a kernel dependency as metadata.json and a kernel lock spell it."""
    version = {"version": kernel.version} if kernel.revision is None else {"revision": kernel.revision}
    return {"repo-id": kernel.repo_id, **version}


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildInputs:
    """The inputs, apart from the version of builder, that a rebuild needs in order to give the same bytes."""

    project: str | None = None
    """The digest of the rendered project."""
    framework: str | None = None
    """The version of torch or tvm-ffi."""
    pins: str | None = None
    """The digest of the pinned wheels."""
    toolchain: Mapping[str, str] | None = None
    """The versions of the compilers, by their names."""
    not_reproducible: str | None = None
    """Why a rebuild may give other bytes all the same."""

    def to_dict(self) -> dict[str, Any]:
        """Return the known inputs, as metadata.json spells them."""
        found = {key: value for key, value in codec.encode(self).items() if value is not None}
        return {key: dict(sorted(value.items())) if isinstance(value, dict) else value for key, value in found.items()}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _spelled(value: object) -> str | None:
    return None if value is None else str(value)


def _all_spelled(value: object) -> tuple[str, ...] | None:
    return tuple(map(str, value)) if isinstance(value, list) else None


def _anything(value: object) -> object:
    return value


class _Entry(Generic[T]):
    """A property: the value at a path of keys, converted by `read`."""

    def __init__(self, read: Callable[[object], T], *path: str) -> None:
        self._read, self._path = read, path

    def __get__(self, metadata: "KernelMetadata", _: type) -> T:
        found: object = metadata.table
        for key in self._path:
            found = _mapping(found).get(key)
        return self._read(found)


@dataclass(frozen=True, slots=True)
class KernelMetadata:
    """The content of a metadata.json. In the file of a stranger, a property with an unusable value is empty."""

    table: Mapping[str, Any] = field(default_factory=dict)
    """The JSON object, with keys that this version does not know."""

    @classmethod
    def of(cls, config: Config, backend: Backend, *, ops: str, extensions: Mapping[str, str]) -> "KernelMetadata":
        """Return the metadata of a kernel for one backend; a build completes it.

        `ops` is the id of the main library; `extensions` has the ids of the other libraries, by extension name.
        """
        general = config.general
        kernels = [dependency_table(kernel) for kernel in config.kernel_depends(backend)]
        table: dict[str, Any] = {
            "name": str(general.name),
            "id": ops,
            "version": general.version,
            **({"kernels-minver": _DEPENDS_SINCE} if kernels else {}),
            "license": general.license,
        }
        table |= {key: value for key in ("upstream", "source") if (value := getattr(general, key)) is not None}
        table["python-depends"] = list(dict.fromkeys(config.python_depends(backend)))
        if kernels:
            table["kernel-depends"] = kernels
        if extensions:
            table["extensions"] = dict(extensions)
        table["backend"] = {"type": str(backend)}
        gpus = config.required_gpus(backend)
        required: dict[str, Any] = {"gpus": list(gpus)} if gpus else {}
        if config.wheel.max_size is not None:
            required["max-size"] = str(config.wheel.max_size)
        budgets = [codec.encode(budget) for budget in config.function_budgets(backend)]
        if budgets:
            plain = [{key: value for key, value in each.items() if value not in (None, [])} for each in budgets]
            required["functions"] = plain
        if required:
            table["require"] = required
        if config.ctypes is not None:
            table["exports"] = list(config.ctypes.exports_of(backend))
        return cls(table)

    @classmethod
    def read(cls, content: bytes) -> "KernelMetadata":
        """Read a metadata.json, which a stranger may have written.

        Raises:
            UntrustedError: it is not a JSON object, or is too large or too deep.
        """
        return cls(untrusted.json_object(content))

    @property
    def text(self) -> str:
        """The text of the file."""
        return json_text.document(self.table, escaped=False)

    def template(self, completed: AbstractSet[str]) -> str:
        """Return the template of the file for CMake, which fills in `archs`, `extensions` or both."""
        table = dict(self.table)
        if "archs" in completed:
            table["backend"] = {**table["backend"], "archs": []}
        if "extensions" in completed and "extensions" in table:
            table["extensions"] = []
        # The config's own text has no '@', so CMake replaces only these.
        text = KernelMetadata(table).text.replace("@", "\\u0040")
        for key in sorted(completed):
            text = text.replace(f'"{key}": []', f'"{key}": {_COMPLETED[key]}')
        return text

    def built(
        self,
        package: Mapping[str, bytes],
        *,
        archs: Sequence[str] | None = None,
        inputs: RebuildInputs | None = None,
        only: Sequence[str] = (),
        shared_code: Sequence[str] = (),
    ) -> "KernelMetadata":
        """Return the metadata of a built package, whose files are given by path.

        `archs` are the compiled architectures (None keeps the ones in the file), `only` the GPUs of a quick build, and
        `shared_code` the members of `archs` that run the machine code of another one.
        """
        table = dict(self.table)
        if archs is not None:
            table["backend"] = {**table["backend"], "archs": list(archs)}
        if not table.get("extensions", True):
            del table["extensions"]  # the cell has none of the project's extensions
        build = {} if inputs is None else inputs.to_dict()
        if only:
            build |= {"archs": list(only), "not-for-release": f"built for {', '.join(only)} alone"}
        if shared_code:
            build["shared-code"] = list(shared_code)
        table["digest"] = {"algorithm": "sha256", "files": _digests(package)}
        table["provenance"] = {"kernel-builder": {"version": __version__}}
        table["build"] = build
        return KernelMetadata(table)

    def of_family(
        self,
        family: str,
        package: Mapping[str, bytes],
        *,
        archs: Sequence[str],
        gpus: Sequence[str],
        shared_code: Sequence[str],
    ) -> "KernelMetadata":
        """Return the metadata of a package for one family of GPUs, whose files are given by path.

        `archs` are the architectures in it; `gpus` and `shared_code` become `required_gpus` and `shared_code`.
        """
        table = dict(self.table)
        table["backend"] = {**table["backend"], "archs": list(archs)}
        table["digest"] = {**table["digest"], "files": _digests(package)}
        required = table.get("require")
        if isinstance(required, dict) and isinstance(required.get("gpus"), list):
            others = {key: value for key, value in required.items() if key != "gpus"}
            table["require"] = {**others, **({"gpus": list(gpus)} if gpus else {})}
        build = {**_mapping(self.table.get("build")), "gpus": family}
        build.pop("shared-code", None)
        table["build"] = {**build, **({"shared-code": list(shared_code)} if shared_code else {})}
        return KernelMetadata(table)

    def from_commit(self, commit: str, *, dirty: bool) -> "KernelMetadata":
        """Return a copy with the commit that was built; `dirty` means that files differed from it."""
        return self._of_provenance({"kernel": {"commit": commit, "dirty": dirty}})

    def without_sandbox(self) -> "KernelMetadata":
        """Return a copy that is marked as built without a sandbox."""
        return self._of_provenance({"sandbox": False})

    name = _Entry(_text, "name")
    """The kernel's name, as its config spells it."""
    version = _Entry(_number, "version")
    """The major version of the kernel."""
    ops = _Entry(_text, "id")
    """The id of the main library."""
    license = _Entry(_text, "license")
    """The license, as the config has it."""
    source = _Entry(_text, "source")
    """The repository of the kernel."""
    upstream = _Entry(_text, "upstream")
    """The repository from which the kernel was taken."""
    python_depends = _Entry(_texts, "python-depends")
    """The Python packages that the kernel imports."""
    backend = _Entry(_spelled, "backend", "type")
    """The backend, unchecked."""
    archs = _Entry(_all_spelled, "backend", "archs")
    """The architectures of its device code; None if the file lists none."""
    max_size = _Entry(_anything, "require", "max-size")
    """The most bytes that the wheel may have, unchecked; None without a limit."""
    builder = _Entry(_text, "provenance", "kernel-builder", "version")
    """The version of builder that built it."""
    commit = _Entry(_text, "provenance", "kernel", "commit")
    """The commit from which it was built."""
    quick_archs = _Entry(_texts, "build", "archs")
    """The GPUs of a quick build; empty for a full one."""
    not_for_release = _Entry(_spelled, "build", "not-for-release")
    """Why it must not be published; None if it may be."""
    shared_code = _Entry(_texts, "build", "shared-code")
    """Architectures that run the machine code of another one, because the compiler wrote the same code for both."""

    @property
    def extensions(self) -> Mapping[str, str]:
        """The ids of the libraries other than the main one, by extension name."""
        return {name: ops for name, ops in _mapping(self.table.get("extensions")).items() if is_extension(name, ops)}

    @property
    def kernel_depends(self) -> tuple[object, ...]:
        """The kernels that it depends on, unchecked; each should look as `dependency_table` makes it."""
        listed = self.table.get("kernel-depends") or []
        return tuple(listed) if isinstance(listed, list) else (listed,)

    @property
    def exports(self) -> tuple[str, ...]:
        """The functions that a plain library promises to export; empty if an entry is not a string."""
        found = self.table.get("exports")
        return tuple(found) if isinstance(found, list) and len(_texts(found)) == len(found) else ()

    @property
    def required_gpus(self) -> tuple[str, ...]:
        """The GPUs that must run the whole kernel, unchecked."""
        return _all_spelled(_mapping(self.table.get("require")).get("gpus")) or ()

    @property
    def function_budgets(self) -> tuple[FunctionBudget, ...] | None:
        """The limits of functions, of which the last that fits counts; None where they are not to be understood."""
        listed = _mapping(self.table.get("require")).get("functions", [])
        try:
            return tuple(codec.decode(FunctionBudget, each) for each in listed[:_MOST_BUDGETS])
        except (codec.DecodeError, ValueError, TypeError, KeyError):
            return None

    @property
    def digests(self) -> Mapping[str, str]:
        """The hashes of the package's files, by path."""
        files = _mapping(_mapping(self.table.get("digest")).get("files"))
        return {str(name): str(digest) for name, digest in files.items()}

    def has_digests(self, digests: Mapping[str, bytes]) -> bool:
        """Whether the digest lists exactly these files with these sha256 hashes."""
        files = {name: base64.b64encode(digest).decode() for name, digest in digests.items()}
        return bool(self.table.get("digest") == {"algorithm": "sha256", "files": files})

    @property
    def unsandboxed(self) -> bool:
        """Whether it is marked as built without a sandbox."""
        return _mapping(self.table.get("provenance")).get("sandbox") is False

    @property
    def inputs(self) -> RebuildInputs:
        """The recorded inputs that a rebuild must have."""
        build = _mapping(self.table.get("build"))
        tools = build.get("toolchain")
        return RebuildInputs(
            project=_text(build.get("project")),
            framework=_text(build.get("framework")),
            pins=_text(build.get("pins")),
            toolchain={name: str(version) for name, version in tools.items()} if isinstance(tools, dict) else None,
            not_reproducible=_text(build.get("not-reproducible")),
        )

    @property
    def identity(self) -> Mapping[str, object]:
        """The name and the version, unchecked: all variants of a kernel share them."""
        return {key: self.table[key] for key in ("name", "version") if key in self.table}

    def unlike(self, other: "KernelMetadata") -> Iterator[tuple[str, object, object]]:
        """Yield each key of the config whose value differs in `other`, with both values."""
        for key in _OF_CONFIG:
            if self.table.get(key) != other.table.get(key):
                yield key, self.table.get(key), other.table.get(key)

    @property
    def unusable(self) -> str | None:
        """Why a wheel with this metadata cannot be published; None if it can."""
        lacking = ", ".join(f"'{key}'" for key in ("name", "backend", "digest") if key not in self.table)
        if lacking:
            return f"lacks {lacking}"
        wrong = "; ".join(
            f"'{key}' is {_KINDS[kind]}"
            for key, kind in _TYPES.items()
            if key in self.table and type(self.table[key]) is not kind
        )
        return f"has values of another type: {wrong}" if wrong else None

    def _of_provenance(self, more: Mapping[str, Any]) -> "KernelMetadata":
        return KernelMetadata({**self.table, "provenance": {**_mapping(self.table.get("provenance")), **more}})


def _digests(package: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64_sha256(package[name]) for name in sorted(package) if is_digested(name)}
