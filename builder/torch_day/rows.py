"""Write the rows of a release into `matrix.toml`, in the layout of the file."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from builder import toml
from builder.config import Backend, Framework, Version
from builder.errors import BuilderError
from builder.matrix.variant import Variant
from builder.torch_day.proposal import FileEdit, ProposedLine
from builder.torch_day.torch_release import ORDER, Release, TorchBuild

NAME = "matrix.toml"
_ROW = re.compile(r'  \{ torch = "[0-9.]+", .* \},')
_VARIANT = re.compile(r'(?<![-\w])variant = "(?P<variant>[^"]+)"')
_TVM_FFI = re.compile(r', tvm-ffi = "[^"]+", tvm-ffi-variant = "(?P<variant>[^"]+)"')
_UNTESTED = ", tested = false"
_PYTHONS = re.compile(r'"(?P<torch>[0-9.]+)" = \[')


class LayoutError(BuilderError):
    """The file does not have the layout that this module writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOptions:
    """A person's decisions about rows."""

    into: str = "release"
    """The set of the new rows."""
    drop: tuple[str, ...] = ()
    """Versions whose rows move from the release set to the legacy set."""


def row(build: TorchBuild, version: Version) -> str:
    """Return the line for a build."""
    toolkit = "" if build.toolkit is None else f'toolkit = "{build.toolkit}", '
    return (
        f'  {{ torch = "{version}", backend = "{build.backend}", {toolkit}compute = "{build.compute}", '
        f'system = "{build.system}", variant = "{variant(build, version)}" }},'
    )


def variant(build: TorchBuild, version: Version) -> str:
    """Return the name of the classic cell of a build."""
    return str(
        Variant(
            framework=Framework.TORCH,
            version=version,
            stable=False,
            backend=build.backend,
            compute=build.compute,
            system=build.system,
        )
    )


def edit(release: Release, text: str, options: RowOptions) -> FileEdit:
    """Return the file with the rows of a release.

    Raises:
        LayoutError: somebody changed the layout of the file.
    """
    lines = _with_pythons(release, [ProposedLine(text=line) for line in text.splitlines()])
    for build in release.builds:
        new = ProposedLine(text=row(build, release.minor), source=build.source)
        lines = _with_row(lines, new, options.into)
    for version in options.drop:
        lines = _dropped(lines, version)
    return FileEdit(name=NAME, old=text, new=tuple(lines))


def not_seen(release: Release, text: str) -> Iterator[str]:
    """Report rows of a release without a published wheel; they stay."""
    seen = {variant(build, release.minor) for build in release.builds}
    for line in text.splitlines():
        if _ROW.fullmatch(line) and Version(_facts(line)["torch"]) == release.minor and _variant(line) not in seen:
            yield f"row stays, although no wheel was seen for it: {_variant(line) or line.strip()}"


def staying(text: str, options: RowOptions) -> Iterator[str]:
    """Report rows of dropped versions that stay, given the file with all other changes.

    Raises:
        LayoutError: somebody changed the layout of the file.
    """
    lines = [ProposedLine(text=line) for line in text.splitlines()]
    for version in options.drop:
        for line in _of_version(lines, version)[1]:
            yield f"row stays, since no other torch of the release set has its backend there: {line.text.strip()}"


def _with_pythons(release: Release, lines: Sequence[ProposedLine]) -> list[ProposedLine]:
    """Return the lines with a release's Pythons, in the order of versions."""
    source = f"names of the wheels of torch {release.version} on the default index"
    new = ProposedLine(text=f'"{release.minor}" = {toml.spelled(list(release.pythons))}', source=source)
    if any(line.text == new.text for line in lines):
        return list(lines)
    kept = [line for line in lines if not line.text.startswith(f'"{release.minor}" = [')]
    place = _index(kept, "[pythons]") + 1
    for number, line in enumerate(kept):
        match = _PYTHONS.match(line.text)
        if match is not None and Version(match["torch"]) < release.minor:
            place = number + 1
    return [*kept[:place], new, *kept[place:]]


def _with_row(lines: list[ProposedLine], new: ProposedLine, into: str) -> list[ProposedLine]:
    """Add a row to the lines; a row with the same facts in the set stays with what a person added, as a tested one."""
    name = _variant(new.text)
    for number in _block(lines, into):
        if _variant(lines[number].text) == name:
            old = lines[number]
            if _facts(old.text) == _facts(new.text):
                new = replace(new, text=old.text.replace(_UNTESTED, "")) if _UNTESTED in old.text else old
            return [*lines[:number], new, *lines[number + 1 :]]
    lines = [line for line in lines if name is None or _variant(line.text) != name]
    place = _start(lines, into)
    for number in _block(lines, into):
        if _key(lines[number].text) <= _key(new.text):
            place = number + 1
    return [*lines[:place], new, *lines[place:]]


def _dropped(lines: list[ProposedLine], version: str) -> list[ProposedLine]:
    """Move the rows of a version to the legacy set; its tvm-ffi cells move to rows that stay.

    A row stays if it is the last one for its backend and system.
    """
    leaving, staying = _of_version(lines, version)
    if not leaving and not staying:
        raise BuilderError(f"no row of the release set has torch '{version}'", help="name a version that has rows")
    lines = [line for line in lines if line not in leaving]
    place = max(_block(lines, "legacy"), default=_start(lines, "legacy") - 1) + 1
    lines = [*lines[:place], *leaving, *lines[place:]]
    for line in leaving:
        match = _TVM_FFI.search(line.text)
        if match is not None:
            _move_tvm_ffi(lines, match[0], line.text)
    return lines


def _of_version(lines: Sequence[ProposedLine], version: str) -> tuple[list[ProposedLine], list[ProposedLine]]:
    """Return the rows of a version in the release set: rows that can leave, and the last ones of a backend."""
    release = [lines[number] for number in _block(lines, "release")]
    mine = [line for line in release if Version(_facts(line.text)["torch"]) == Version(version)]
    others = {_where(line.text) for line in release if line not in mine}
    leaving = [line for line in mine if _where(line.text) in others]
    return leaving, [line for line in mine if line not in leaving]


def _where(text: str) -> tuple[str, str]:
    facts = _facts(text)
    return facts["backend"], facts["system"]


def _move_tvm_ffi(lines: list[ProposedLine], keys: str, row_text: str) -> None:
    """Move the keys of a tvm-ffi cell to the oldest row of the release set for the same toolkit and system.

    If no row has the toolkit any more, they move to the backend's next toolkit.
    """
    block = _block(lines, "release")
    if any(keys in lines[number].text for number in block):
        return
    like = _facts(row_text)
    same = [number for number in block if _where(lines[number].text) == _where(row_text)]
    exact = [number for number in same if _facts(lines[number].text)["compute"] == like["compute"]]
    place = next(iter(exact or same), None)
    if place is None or _TVM_FFI.search(lines[place].text):
        return
    own = keys.replace(f"-{like['compute']}-", f"-{_facts(lines[place].text)['compute']}-")
    source = f"its tvm-ffi cell was that of torch {like['torch']}, which leaves"
    lines[place] = ProposedLine(text=lines[place].text.replace(" },", f"{own} }},"), source=source)


def _start(lines: Sequence[ProposedLine], name: str) -> int:
    """Return the position of the first row of a set."""
    header = _index(lines, f"[{name}]")
    if _index(lines, "cell = [", after=header) != header + 1:  # that of another set
        raise LayoutError(f"{NAME} has no line 'cell = [' below '[{name}]'", help="lay the file out as it was")
    return header + 2


def _block(lines: Sequence[ProposedLine], name: str) -> list[int]:
    """Return the positions of the rows of a set."""
    start = _start(lines, name)
    return [
        number for number in range(start, _index(lines, "]", after=start - 1)) if _ROW.fullmatch(lines[number].text)
    ]


def _index(lines: Sequence[ProposedLine], text: str, *, after: int = -1) -> int:
    for number in range(after + 1, len(lines)):
        if lines[number].text == text:
            return number
    raise LayoutError(f"{NAME} has no line '{text}' where one is expected", help="lay the file out as it was")


def _variant(text: str) -> str | None:
    match = _VARIANT.search(text)
    return None if match is None else match["variant"]


def _facts(text: str) -> dict[str, Any]:
    """Return the facts of a row that wheels state, without a person's decisions such as `bundle`."""
    (table,) = toml.loads(f"row = [\n{text}\n]")["row"]
    return {key: table.get(key) for key in ("torch", "backend", "toolkit", "compute", "system", "variant")}


def _key(text: str) -> tuple[Version, tuple[int, tuple[int, ...], int]]:
    facts = _facts(text)
    if facts["backend"] not in {backend.value for backend in ORDER}:
        return Version(facts["torch"]), (len(ORDER), (), 0)
    build = TorchBuild(system=facts["system"], backend=Backend(facts["backend"]), toolkit=facts["toolkit"], source="")
    return Version(facts["torch"]), build.place_in_file
