"""The record of everything that decides the bytes of a wheel; its digest is the build key."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from builder import json_text
from builder.hashes import sha256

_NAMED = re.compile(r"CMakeLists\.txt|_ops(?:_[a-z0-9_]+)?\.py|_library\.py|metadata\.json(?:\.in)?", re.ASCII)
"""Rendered files that name the ops, and so change with any file of the project."""


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
        return json_text.document(asdict(self), indent=1, ordered=True, escaped=False)

    @property
    def key(self) -> str:
        """The build key: 64 hexadecimal digits."""
        return sha256(self.to_json())


def of_build_tools() -> dict[str, str]:
    """Return the versions of the tools that configure a build without isolation; otherwise the pins have them."""
    return {name: _version_of(name) for name in ("cmake", "scikit-build-core")}


def _version_of(distribution: str) -> str:
    from importlib import metadata  # noqa: PLC0415  only a build without isolation asks

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:  # a system's own CMake, as conda has it
        return "not a package"


def file_digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the sha256 of each file of a rendered project."""
    return {path: sha256(content) for path, content in files.items()}


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
    """Whether a field is a rendered file that contains the unique name of the ops, and so changes with any other."""
    file = name.removeprefix("project: ").rpartition("/")[2]
    return name.startswith("project: ") and _NAMED.fullmatch(file) is not None


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
