"""Propose the data of a new torch, read from its published wheels, for a person to review."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from builder import pins as pinning
from builder import toml
from builder.config import Backend
from builder.environment import indexes
from builder.errors import BuilderError, ToolError
from builder.files import write_atomic
from builder.matrix import rules
from builder.pins import Pins
from builder.torch_day import read, rows, tables
from builder.torch_day.proposal import Proposal
from builder.torch_day.rows import RowOptions
from builder.torch_day.torch_release import FIRST_WITH_WHEELS, Release, to_json


def propose(
    version: str | None,
    *,
    data: Path,
    options: RowOptions,
    environ: Mapping[str, str],
    progress: Callable[[str], None],
    record: Path | None = None,
) -> tuple[Release, Proposal]:
    """Read a release from the indexes, by default the first new one, and return it with the changes that it needs.

    Raises:
        BuilderError: a data file cannot be read.
        NothingToDoError: no release is new.
        NoTorchError: no such version is published.
        ToolError: an index did not answer, or a wheel cannot be read.
    """
    texts = {name: _text(data / name) for name in READ}
    pins = pinning.load(data / "pins.toml")
    source = read.Indexes(
        pins=pins,
        env=indexes.read(environ).env,
        libraries=tuple(json.loads(texts[tables.SHIM])),
        progress=progress,
    )
    known = {str(row.torch) for row in rules.read(texts[rows.NAME])}
    release = read.read(version or read.newer(source, known)[0], source)
    if record is not None:
        write_atomic(record, to_json(release).encode())
    return release, changes(release, texts, pins, options)


def _text(path: Path) -> str:
    """Read a data file, and check that it is valid."""
    try:
        text = path.read_text(encoding="utf-8")
        _ = json.loads(text) if path.suffix == ".json" else toml.loads(text)
    except OSError as error:
        raise BuilderError(
            f"cannot read '{path}': {error.strerror}", help="name the folder of data in --data"
        ) from error
    except ValueError as error:  # from JSON, TOML or UTF-8
        raise BuilderError(f"'{path}' cannot be read: {error}", help="correct or restore it") from error
    return text


def require_answers(release: Release, *, partial: bool) -> None:
    """Refuse to write data that is incomplete because an index did not answer.

    Raises:
        ToolError: an index did not answer.
    """
    if release.away and not partial:
        count = "an index" if len(release.away) == 1 else f"{len(release.away)} indexes"
        raise ToolError(
            f"{count} did not answer, so rows and pins may be missing",
            help="nothing was written; run it where they can be reached, or write what is known: --partial "
            "(make torch-day TORCH_DAY=--partial)",
        )


FILES = (rows.NAME, tables.PINS, tables.SHIM, tables.PYTHON_HEADERS, tables.STANDARDS)
"""The files that a proposal may change."""
RUNNERS = "runners.toml"
ARCHITECTURES = "architectures.toml"
READ = (*FILES, RUNNERS, ARCHITECTURES)
"""The files that are read."""


def changes(release: Release, texts: Mapping[str, str], pins: Pins, options: RowOptions) -> Proposal:
    """Return the changes to the data files for a release."""
    edits = (
        rows.edit(release, texts[rows.NAME], options),
        tables.pins(release, texts[tables.PINS], pins),
        tables.shim(release, texts[tables.SHIM]),
        tables.python_headers(release, texts[tables.PYTHON_HEADERS]),
        tables.standards(release, texts[tables.STANDARDS]),
    )
    changed = tuple(edit for edit in edits if edit.text != edit.old)
    notes = _notes(release, texts, pins, new_standard=edits[-1] in changed)
    return Proposal(edits=changed, notes=(*release.notes, *rows.staying(edits[0].text, options), *notes))


def _notes(release: Release, texts: Mapping[str, str], pins: Pins, *, new_standard: bool) -> Iterator[str]:
    yield from rows.not_seen(release, texts[rows.NAME])
    yield from tables.gone(release, texts[tables.SHIM])
    if release.standard is None:
        yield f"{release.file} does not say its C++ standard: look at TorchConfig.cmake"
    if new_standard:
        yield "the C++ standard is another: cmake/torch/extension.cmake and builder/lint/cxx_standard.py name it, too"
    pinned = {python for part in release.parts for table in part.wheels.values() for python in table}
    unpinned = ", ".join(python for python in release.pythons if python not in pinned)
    if unpinned:
        yield (
            f"torch has wheels for {unpinned}, but nothing is pinned for it: add it to `pythons` of {tables.PINS} "
            "once all that torch imports has wheels for it, too"
        )
    lacking = ", ".join(python for python in pins.pythons if python not in release.pythons)
    if lacking:
        yield f"torch {release.version} has no wheel for {lacking} on the default index: not yet, or not any more"
    yield from _without_container(release, texts[RUNNERS])
    yield from _unmeasured(release, texts[ARCHITECTURES])
    yield (
        f"torch-headeronly.toml is not read from wheels: in an environment with torch {release.version} and the tests' "
        "packages, run pytest tests/audit/test_torch.py"
    )


def _without_container(release: Release, text: str) -> Iterator[str]:
    """Report toolkits without a CI image and without a wheel."""
    have = {(entry["backend"], entry["toolkit"], entry["system"]) for entry in toml.loads(text).get("container", ())}
    for build in release.builds:
        if build.toolkit is None:
            continue
        minor = ".".join(build.toolkit.split(".")[:2])
        as_wheels = build.backend is Backend.CUDA and int(minor.partition(".")[0]) >= FIRST_WITH_WHEELS
        if not as_wheels and (build.backend.value, minor, build.system) not in have:
            yield f"{RUNNERS} has no image for {build.backend} {minor} on {build.system}"


def _unmeasured(release: Release, text: str) -> Iterator[str]:
    """Report CUDA toolkits whose architectures nobody has measured."""
    measured = " ".join(entry.get("measured", "") for entry in toml.loads(text)["cuda"]["toolkit"])
    toolkits = {build.toolkit for build in release.builds if build.backend is Backend.CUDA and build.toolkit}
    for toolkit in sorted(toolkits):
        if f"{toolkit}." not in measured:
            yield f"compare `ptxas --help` of CUDA {toolkit} with {ARCHITECTURES}"
