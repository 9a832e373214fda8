"""The record of everything that decides a wheel's bytes; its digest is the build key."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from builder import __version__, codec, json_text, resources, toml
from builder.hashes import sha256, sha256_of
from builder.make import header_folders, reproducible
from builder.make.framework import python_of_torch
from builder.make.job import Job
from builder.render import source_scan
from builder.sandbox import CANONICAL
from builder.toolchain.tool import REACHES_BUILD
from builder.wheel import core_metadata

_NAMED = re.compile(r"CMakeLists\.txt|_ops(?:_[a-z0-9_]+)?\.py|_library\.py|metadata\.json(?:\.in)?", re.ASCII)
"""Rendered files that contain the name of the ops, and so change whenever any file of the project changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """Everything that decides a wheel's bytes; the digest of the record is the build key."""

    builder: str
    variant: str
    wheel: Mapping[str, str]
    """Parts of the file name, and metadata, that are not in the rendered project."""
    project: Mapping[str, str]
    """sha256 of each file of the rendered project, including sources and headers."""
    framework: Mapping[str, object]
    pins: str
    """Digest of the pinned wheels; empty without isolation."""
    toolchain: Mapping[str, str]
    environment: Mapping[str, str]
    """The variables that reach the compilers."""

    def to_json(self) -> str:
        """Return the record as canonical JSON."""
        return json_text.document(codec.encode(self), indent=1, ordered=True, escaped=False)

    @property
    def key(self) -> str:
        """The build key: 64 hexadecimal digits."""
        return sha256(self.to_json())


def record_of(job: Job) -> BuildRecord:
    """Return the record of a build, before anything is installed."""
    spec, options = job.spec, job.options
    requirements = core_metadata.requirements(job.kernel.config, spec.cell, job.framework.version)
    return BuildRecord(
        builder=identity(),
        variant=spec.cell.variant,
        wheel={
            "version": options.version or "",
            "label": str(options.label),
            "policy": options.policy,
            "requires": ", ".join(requirements),
            # A quick build never counts as a full one, even if both compile the same code.
            **({"archs": " ".join(options.only)} if options.only else {}),
        },
        project=file_digests(job.project.files),
        framework=codec.encode(job.framework),
        pins=spec.pins,
        toolchain={} if job.toolchain is None else job.toolchain.identity,
        environment=_environment(job),
    )


def _environment(job: Job) -> dict[str, str]:
    environ, without = job.environ, job.options.without
    canonical = job.canonical or job.at_canonical_path
    hidden = job.sandboxed or job.in_nix_sandbox
    result = {
        "SOURCE_DATE_EPOCH": str(job.options.epoch),
        "place": str(CANONICAL) if canonical and job.toolchain is not None else "",
        **({"without": " ".join(without)} if without else {}),
        # Without a sandbox, a wheel may depend on things outside the key, so it never counts as one built in a sandbox.
        **({} if hidden else {"sandbox": "none"}),
    }
    reached = (*REACHES_BUILD, reproducible.SANDBOX_PATHS)
    result |= {name: environ[name] for name in reached if environ.get(name)}
    result |= job.options.variables
    if job.environment is None:
        result |= of_build_tools()
        if source_scan.needed_by(job.project):
            result["python"] = python_of_torch(job.site_packages)
    return result | header_folders.digests(job.kernel.config, job.cell.backend, environ=environ)


def of_build_tools() -> dict[str, str]:
    """Return the versions of the tools that configure a build without isolation; pins cover them otherwise."""
    from importlib import metadata  # noqa: PLC0415  only a build without isolation asks

    found = dict.fromkeys(("cmake", "scikit-build-core"), "not a package")  # such as CMake from the system or conda
    for name in found:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def file_digests(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the sha256 of each file of a rendered project."""
    return {path: sha256(content) for path, content in files.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A field of the record that differs."""

    field: str
    before: object
    after: object


def changes(before: Mapping[str, Any], after: BuildRecord) -> tuple[Change, ...]:
    """Return the differing fields of a stored record and a new one: causes first, then sorted."""
    old, new = dict(_flat(before)), dict(_flat(codec.encode(after)))
    names = sorted({*old, *new}, key=lambda name: (_follows(name), name))
    found = (Change(field=name, before=old.get(name), after=new.get(name)) for name in names)
    return tuple(change for change in found if change.before != change.after)


def _follows(name: str) -> bool:
    """Whether a field is a rendered file with the unique name of the ops, which changes with any other file."""
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
    """Return a line with the fields that changed since the last build."""
    names = [change.field for change in changes(before, after)]
    if not names:
        return "the store no longer has it"
    causes = [name for name in names if not _follows(name)] or names
    more = f" and {len(causes) - _SHOWN} more" if len(causes) > _SHOWN else ""
    follow = len(names) - len(causes)
    named = f"; {follow} rendered {'file has' if follow == 1 else 'files have'} its new name" if follow else ""
    return f"changed: {', '.join(causes[:_SHOWN])}{more}{named}"


LIST = resources.DATA / "decides-bytes.toml"


@cache
def identity() -> str:
    """Return the version of `builder`, and a digest of the code that decides bytes, since a checkout can differ."""
    digests = "".join(f"{name} {sha256_of(path)}\n" for name, path in files())
    return f"{__version__} sha256:{sha256(digests)}"


def files() -> tuple[tuple[str, Path], ...]:
    """Return every file of the list, sorted: its path in the repository, and its path on this machine."""
    table = toml.loads(LIST.read_text(encoding="utf-8"))
    left_out = frozenset(table["exclude"])
    found = (pair for entry in table["include"] for pair in _below(entry, resources.place(entry)))
    return tuple(sorted((name, path) for name, path in found if name not in left_out))


def _below(name: str, path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield name, path
        return
    for inner in path.rglob("*"):
        relative = PurePosixPath(inner.relative_to(path).as_posix())
        if inner.suffix != ".pyc" and not any(part.startswith(".") for part in relative.parts) and inner.is_file():
            yield f"{name}/{relative}", inner
