"""What a release changes: every row, pin and table, and what a person has to look at."""

from collections.abc import Iterator, Mapping

from builder import toml
from builder.config import Backend
from builder.pins import Pins
from builder.torch_day import pinning, rows, tables
from builder.torch_day.proposal import Proposal
from builder.torch_day.release import Build, Release
from builder.torch_day.rows import RowOptions

FILES = (rows.NAME, pinning.NAME, tables.SHIM, tables.PYTHON_HEADERS, tables.STANDARDS)
"""The files that a proposal may change."""
RUNNERS = "runners.toml"
ARCHITECTURES = "architectures.toml"
READ = (*FILES, RUNNERS, ARCHITECTURES)
"""The files that are read."""
_FIRST_WITH_WHEELS = 13


def propose(release: Release, texts: Mapping[str, str], pins: Pins, options: RowOptions) -> Proposal:
    """Return what a release changes in the texts of the data files."""
    edits = (
        rows.edit(release, texts[rows.NAME], options),
        pinning.edit(release, texts[pinning.NAME], pins),
        tables.shim(release, texts[tables.SHIM]),
        tables.python_headers(release, texts[tables.PYTHON_HEADERS]),
        tables.standards(release, texts[tables.STANDARDS]),
    )
    return Proposal(
        edits=tuple(edit for edit in edits if edit.text != edit.old),
        notes=(*release.notes, *rows.staying(edits[0].text, options), *_notes(release, texts, pins)),
    )


def _notes(release: Release, texts: Mapping[str, str], pins: Pins) -> Iterator[str]:
    yield from rows.not_seen(release, texts[rows.NAME])
    yield from tables.gone(release, texts[tables.SHIM])
    if release.standard is None:
        yield f"{release.file} does not say its C++ standard: look at TorchConfig.cmake"
    if any(edit.text != edit.old for edit in (tables.standards(release, texts[tables.STANDARDS]),)):
        yield "the C++ standard is another: cmake/torch/extension.cmake and builder/lint/cxx_standard.py name it, too"
    pinned = {python for part in release.parts for table in part.wheels.values() for python in table}
    unpinned = [python for python in release.pythons if python not in pinned]
    if unpinned:
        listed = ", ".join(unpinned)
        yield (
            f"torch has wheels for {listed}, but nothing is pinned for it: add it to `pythons` of {pinning.NAME} "
            "once all that torch imports has wheels for it, too"
        )
    lacking = [python for python in pins.pythons if python not in release.pythons]
    if lacking:
        listed = ", ".join(lacking)
        yield f"torch {release.version} has no wheel for {listed} on the default index: not yet, or not any more"
    yield from _without_container(release.builds, texts[RUNNERS])
    yield from _unmeasured(release.builds, texts[ARCHITECTURES])
    yield (
        f"torch-headeronly.toml is not read from wheels: in an environment with torch {release.version} and the tests' "
        "packages, run pytest tests/audit/test_torch.py"
    )


def _without_container(builds: tuple[Build, ...], text: str) -> Iterator[str]:
    """Name the toolkits that no image of CI has, and no wheel."""
    have = {(entry["backend"], entry["toolkit"], entry["system"]) for entry in toml.loads(text).get("container", ())}
    for build in builds:
        if build.toolkit is None:
            continue
        minor = ".".join(build.toolkit.split(".")[:2])
        as_wheels = build.backend is Backend.CUDA and int(minor.partition(".")[0]) >= _FIRST_WITH_WHEELS
        if not as_wheels and (build.backend.value, minor, build.system) not in have:
            yield f"{RUNNERS} has no image for {build.backend} {minor} on {build.system}"


def _unmeasured(builds: tuple[Build, ...], text: str) -> Iterator[str]:
    """Name the CUDA toolkits of which nobody has measured what they compile for."""
    measured = " ".join(entry.get("measured", "") for entry in toml.loads(text)["cuda"]["toolkit"])
    for toolkit in sorted({build.toolkit for build in builds if build.backend is Backend.CUDA and build.toolkit}):
        if f"{toolkit}." not in measured:
            yield f"compare `ptxas --help` of CUDA {toolkit} with {ARCHITECTURES}"
