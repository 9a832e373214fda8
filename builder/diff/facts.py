"""The facts about a wheel that are compared, read from its bytes without loading it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from builder import audit, codec, untrusted
from builder.audit import gpus, hub_layout, limited, reading, sizes
from builder.audit.report import Finding
from builder.audit.resources import Compiled, Gathering
from builder.audit.sizes import CodeSize
from builder.audit.subject import AuditPromise, Library, Subject
from builder.binary.elf_file import Data
from builder.metadata import METADATA_FILE, KernelMetadata
from builder.untrusted import UntrustedError
from builder.wheel import fields
from builder.wheel.archive import Wheel, WheelError

_ID_END = re.compile(r"_[0-9a-f]{7,}$", re.ASCII)
_ARROW, _END = b") -> ", b"\0"
_SCHEMA = re.compile(rb"[A-Za-z_][\w:]{0,199}(\.\w{1,99})?\([ -z|~]*\) -> [ -z|~]+$", re.ASCII)
"""The first text of a section may follow a number, of which the last byte is not zero."""
_LONGEST_SCHEMA = 8192
_MOST_SCHEMAS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedLibrary:
    """A library, with the id of its ops replaced by a name that all builds share."""

    needed: tuple[str, ...] = ()
    """The libraries that it needs."""
    versions: tuple[tuple[str, str], ...] = ()
    """The symbol versions that it needs, each with its library."""
    exports: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    """The symbols that it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A wheel, or a variant of a hub layout."""

    name: str
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    """The content of metadata.json."""
    fields: Mapping[str, tuple[str, ...]]
    """The fields of METADATA that are compared."""
    materials: tuple[str, ...] = ()
    """The addresses of the components in the bill of materials."""
    libraries: Mapping[str, LinkedLibrary] = field(default_factory=dict)
    code: Mapping[str, tuple[CodeSize, ...]] = field(default_factory=dict)
    """The sizes of the device code of each library."""
    functions: tuple[Compiled, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """The libraries whose functions cannot be read, and why."""
    gpus: Mapping[str, str] = field(default_factory=dict)
    """The GPUs that run the whole wheel, each with the code that it runs, in words."""
    schemas: tuple[str, ...] = ()
    """The texts in its libraries that look like schemas of ops."""
    findings: tuple[tuple[str, str, str], ...] = ()
    """The rule, the symbol and the reason of each error that the audit finds."""

    @property
    def kernel(self) -> KernelMetadata:
        """The content of metadata.json."""
        return KernelMetadata(self.metadata)


_FIELDS = ("Requires-Python", "Requires-Dist", "License", "License-Expression")


def of(path: Path) -> Facts:
    """Return the facts of a wheel or a variant, read in a process that costs no more than its size allows.

    Raises:
        WheelError: it is damaged, is no wheel, or costs more to read.
    """
    try:
        return codec.decode(Facts, limited.answered(path, partial(_read, path)))
    except limited.CostlyError as error:
        raise WheelError(f"'{path}': {error}") from error


def opened(path: Path) -> Wheel:
    """Return a wheel, or a variant as a wheel.

    Raises:
        WheelError: it is damaged, or is no wheel.
    """
    return hub_layout.read_variant(path) if hub_layout.is_folder(path) else Wheel.read(path)


def module_of(wheel: Wheel) -> str:
    """Return the folder of a wheel's package, whose name was checked when the wheel was opened.

    Raises:
        WheelError: it has none with a metadata.json.
    """
    tops = sorted({name.partition("/")[0] for name in wheel.members if name.count("/") == 1})
    found = next((top for top in tops if f"{top}/{METADATA_FILE}" in wheel.members), None)
    if found is None:
        raise WheelError(f"'{wheel.path.name}' has no package with a {METADATA_FILE}")
    return found


def shared_names(metadata: KernelMetadata) -> Mapping[str, str]:
    """Return the id of each library, which changes with its sources, with a name that all builds share."""
    ids = filter(None, (metadata.ops, *metadata.extensions.values()))
    return {each: _ID_END.sub("", each) for each in ids}


def _read(path: Path) -> Facts:
    wheel = opened(path)
    gathering = _Gathering()
    subject = reading.read(wheel, plan=AuditPromise(), functions=gathering)
    names = shared_names(subject.metadata)
    resources = subject.resources
    functions = () if resources is None else resources.functions
    return Facts(
        name=path.name,
        tags=subject.tags,
        metadata=subject.metadata.table,
        fields=_fields(subject),
        materials=tuple(_materials(wheel)),
        libraries={_renamed(each.name, names): _library(each, names) for each in subject.libraries},
        code={_renamed(name, names): found for name, found in gathering.code.items()},
        functions=tuple(replace(each, library=_renamed(each.library, names)) for each in functions),
        unreadable={} if resources is None else resources.unreadable,
        gpus={f"{each.gpu.names[0]} ({each.gpu.arch})": each.text for each in gpus.of(subject) if each.runs},
        schemas=tuple(sorted(gathering.schemas)),
        findings=tuple(_told(audit.judge(subject), names)),
    )


def _told(findings: Iterable[Finding], names: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for each in findings:
        if each.severity == "error":
            yield each.rule, _renamed(each.symbol, names), each.why


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for own, shared in names.items():
        text = text.replace(own, shared)
    return text


def _library(library: Library, names: Mapping[str, str]) -> LinkedLibrary:
    it = library.extension
    return LinkedLibrary(
        needed=tuple(sorted(it.needed)),
        versions=it.versions,
        exports=tuple(sorted({_renamed(each.name, names) for each in it.defined if each.binding == "global"})),
        imports=tuple(sorted({symbol.name for symbol in it.undefined})),
    )


@dataclass(slots=True)
class _Gathering(Gathering):
    """The functions of libraries, the sizes of their code, and the texts that look like schemas."""

    code: dict[str, tuple[CodeSize, ...]] = field(default_factory=dict)
    schemas: set[str] = field(default_factory=set)

    def add(self, name: str, data: Data) -> None:
        """Read a library."""
        Gathering.add(self, name, data)
        self.code[name] = tuple(sizes.of_library(name, data))
        self.schemas.update(islice(_schemas(data), _MOST_SCHEMAS))


def _schemas(data: Data) -> Iterator[str]:
    """Yield each text that ends with a zero and looks like the schema of an op."""
    at = data.find(_ARROW, 0)  # that of a map begins where it was written last
    while at >= 0:
        end = data.find(_END, at, at + _LONGEST_SCHEMA)
        start = data.rfind(_END, max(at - _LONGEST_SCHEMA, 0), at) + 1
        found = _SCHEMA.search(bytes(data[start:end])) if end > start else None
        if found is not None:
            yield found[0].decode()
        at = data.find(_ARROW, at + 1)


def _fields(subject: Subject) -> dict[str, tuple[str, ...]]:
    try:
        found = fields.read(subject.text(f"{subject.dist_info}/METADATA"))
    except UntrustedError:
        return {}
    return {name: tuple(map(str, found.get_all(name, []))) for name in _FIELDS}


def _materials(wheel: Wheel) -> Iterator[str]:
    """Yield the addresses of what is built in, by the wheel's bill of materials."""
    for name, member in wheel.members.items():
        if name.startswith(f"{wheel.dist_info}/sboms/") and member.size <= untrusted.LARGEST_TEXT:
            try:
                listed = untrusted.json_object(member.read()).get("components")
            except UntrustedError:
                continue
            for part in listed if isinstance(listed, list) else ():
                if isinstance(part, dict) and isinstance(part.get("purl"), str):
                    yield part["purl"]
