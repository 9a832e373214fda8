"""Ask uv for the wheels that meet requirements: for the pin file, for a load test, or for one release."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.version import Version

from builder import json_text, toml
from builder.environment.fetch import LIMITS
from builder.environment.indexes import uv_binary
from builder.errors import ToolError
from builder.hashes import sha256
from builder.matrix.variant import built_systems, dotted
from builder.pins import PinnedPart, PinnedWheel, Pins, PinSet, Requirement, pin_file
from builder.run import Processes, run
from builder.store import Store

DEPLOYMENT_TARGET = "14.0"
"""The macOS that torch's own wheels require."""
_OTHER_INDEXES = frozenset({"UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_FIND_LINKS"})
"""Variables to remove for a part with its own index, which alone decides."""
_ABSENT = re.compile(
    r"there (?:is|are) no versions? of|only \S+ (?:is|are) available|has no wheels with a matching"
    r"|was not found in the (?:package registry|provided package locations)|only supports [<>=]",
    re.IGNORECASE,
)


class UnresolvedError(ToolError):
    """uv found no wheels for a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A part for one system and Python, resolved by one call of uv: the new wheels, or the reason to keep the old."""

    part: int
    system: str
    python: str
    wheels: tuple[PinnedWheel, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HashCheck:
    """The pins that differ from the indexes, or could not be checked."""

    wrong: tuple[tuple[PinnedWheel, str | None], ...] = ()
    """Pins with a different hash on the index; None if the index lacks the file."""
    unknown: tuple[tuple[PinnedWheel, str], ...] = ()
    """Pins that could not be checked, with the reason."""


def targets(pins: Pins, *, parts: frozenset[str] = frozenset()) -> Iterator[Resolution]:
    """Yield the parts to resolve: all, or only the named ones."""
    for number, part in enumerate(pins.parts):
        if part.requires and (not parts or part.name in parts):
            for system, pythons in part.wheels.items():
                anywhere = pin_file.ANY in pythons
                for python in (pin_file.ANY,) if anywhere else pins.pythons:
                    yield Resolution(part=number, system=system, python=python)


def resolve_all(pins: Pins, todo: tuple[Resolution, ...], *, env: Mapping[str, str]) -> tuple[Resolution, ...]:
    """Resolve several parts at once; an unreachable index fails only the parts that it serves."""

    def one(target: Resolution) -> Resolution:
        part = pins.parts[target.part]
        python = pins.pythons[0] if target.python == pin_file.ANY else target.python
        options = ("--python-version", dotted(python), "--python-platform", built_systems()[target.system].uv)
        try:
            wheels = tuple(_wheels(_locked(part.requires, *options, index=part.index, env=env), part.index))
        except UnresolvedError as error:
            return replace(target, error=error.message)
        kept = tuple(wheel for wheel in wheels if not part.only or wheel.name in part.only)
        return replace(target, wheels=kept)

    with ThreadPoolExecutor(max_workers=4) as pool:
        return tuple(pool.map(one, todo))


def _locked(
    requires: tuple[str, ...],
    *options: str,
    index: str | None,
    env: Mapping[str, str],
    overrides: tuple[str, ...] = (),
    processes: Processes | None = None,
) -> list[dict[str, Any]]:
    """Return the packages in uv's lock file for `requires`.

    Raises:
        UnresolvedError: no index has them, or no index can be reached.
    """
    env = {**env, "MACOSX_DEPLOYMENT_TARGET": DEPLOYMENT_TARGET}
    if index is not None:
        env = {name: value for name, value in env.items() if name not in _OTHER_INDEXES} | {"UV_DEFAULT_INDEX": index}
    with TemporaryDirectory(prefix="builder-pins-") as scratch:
        wanted, locked = Path(scratch, "requires.txt"), Path(scratch, "pylock.toml")
        wanted.write_text("\n".join(requires) + "\n", encoding="utf-8")
        if overrides:
            Path(scratch, "overrides.txt").write_text("\n".join(overrides) + "\n", encoding="utf-8")
            options += ("--override", str(Path(scratch, "overrides.txt")))
        argv = (
            *(uv_binary(), "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:"),
            *("--no-config", *options, "--output-file", str(locked), str(wanted)),
        )
        done = run(argv, processes=processes, cwd=Path(scratch), env=env, limits=LIMITS)
        if done.returncode != 0:
            raise UnresolvedError(done.output.strip())
        packages: list[dict[str, Any]] = toml.loads(locked.read_text(encoding="utf-8"))["packages"]
        return packages


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """A file of a release."""

    file: str
    sha256: str
    place: str
    """Its address or path, which may contain a password and so is never shown."""


def _files(package: Mapping[str, Any]) -> tuple[IndexFile, ...]:
    """Return the wheels of a package in a lock file."""
    found = []
    for wheel in package.get("wheels", ()):
        address = wheel.get("url") or str(Path(wheel["path"]).resolve())
        path = unquote(urlsplit(address).path)
        file = wheel.get("name") or path.rpartition("/")[2]
        place = path if address.startswith("file:") else address
        found.append(IndexFile(file=file, sha256=wheel["hashes"]["sha256"], place=place))
    return tuple(found)


def _wheels(packages: list[dict[str, Any]], index: str | None) -> Iterator[PinnedWheel]:
    """Yield the wheel that uv chose for each package."""
    for package in packages:
        chosen = _files(package)[0]
        name, version, *_ = chosen.file.split("-")
        normal = pin_file.normalized(name)
        yield PinnedWheel(file=chosen.file, name=normal, version=version, sha256=chosen.sha256, index=index)


def verify(pins: Pins, *, env: Mapping[str, str], progress: Callable[[str], None]) -> HashCheck:
    """Ask the indexes for the hash of every pinned file."""
    platforms = _platforms(pins)
    releases: dict[tuple[str, str, str | None], list[PinnedWheel]] = {}
    for wheel in pins.wheels.values():
        releases.setdefault((wheel.name, wheel.version, wheel.index), []).append(wheel)

    def one(wheels: list[PinnedWheel]) -> HashCheck:
        progress(f"{wheels[0].name} {wheels[0].version}")
        try:
            published = _published(wheels[0], platforms[wheels[0].file], env=env, universal=True)
            for wheel in wheels:  # if an index has some files of a release, the next ones are not asked
                if wheel.file not in published:
                    published |= _published(wheel, platforms[wheel.file], env=env, universal=False)
        except UnresolvedError as error:
            return HashCheck(unknown=tuple((wheel, error.message) for wheel in wheels))
        wrong = ((wheel, published.get(wheel.file)) for wheel in wheels)
        return HashCheck(wrong=tuple((wheel, sha256) for wheel, sha256 in wrong if sha256 != wheel.sha256))

    with ThreadPoolExecutor(max_workers=4) as pool:
        checks = tuple(pool.map(one, releases.values()))
    return HashCheck(
        wrong=tuple(wrong for check in checks for wrong in check.wrong),
        unknown=tuple(unknown for check in checks for unknown in check.unknown),
    )


def _platforms(pins: Pins) -> dict[str, tuple[str, str]]:
    """Return a system and the oldest Python for which each file is pinned."""
    return {
        file: (system, pins.pythons[0] if python == pin_file.ANY else python)
        for part in pins.parts
        for system, pythons in part.wheels.items()
        for python, files in sorted(pythons.items(), reverse=True)
        for file in files
    }


def _published(
    wheel: PinnedWheel, target: tuple[str, str], *, env: Mapping[str, str], universal: bool
) -> dict[str, str]:
    """Return name and hash of a release's files: all files of one index, or the best ones for a system."""
    system, python = target
    platform = ("--universal",) if universal else ("--python-platform", built_systems()[system].uv)
    options = (*platform, "--no-deps", "--python-version", dotted(python))
    packages = _locked((f"{wheel.name}=={wheel.version}",), *options, index=wheel.index, env=env)
    return {each.file: each.sha256 for package in packages for each in _files(package)}


def updated(pins: Pins, resolutions: tuple[Resolution, ...]) -> Pins:
    """Replace the resolved parts in the pins, and drop unused wheels."""
    wheels = dict(pins.wheels)
    tables = [{system: dict(table) for system, table in part.wheels.items()} for part in pins.parts]
    for each in resolutions:
        if each.error is None:
            wheels |= {wheel.file: wheel for wheel in each.wheels}
            tables[each.part][each.system][each.python] = tuple(sorted(wheel.file for wheel in each.wheels))
    asked = {each.part for each in resolutions if each.error is None}
    parts = tuple(
        replace(part, wheels=table, tested=part.tested or number in asked)
        for number, (part, table) in enumerate(zip(pins.parts, tables, strict=True))
    )
    used = {file for part in parts for table in part.wheels.values() for files in table.values() for file in files}
    kept = {file: wheel for file, wheel in wheels.items() if file in used}
    return replace(pins, parts=parts, wheels=kept)


def completed(
    pins: Pins, requirement: Requirement, *, store: Store, env: Mapping[str, str] | None, processes: Processes
) -> tuple[Pins, tuple[PinnedWheel, ...]]:
    """Return the pins with the files that a requirement lacks, and these files.

    The user's own indexes are asked for the build that the part's index names, such as `torch==2.15.0+cpu`, and then
    that index. The store keeps the answer, so that every later build uses the same files; without `env`, only the store
    is asked.

    Raises:
        UnresolvedError: no index has the files, or none can be reached.
    """
    found = []
    for number in pins.lacking(requirement):
        part = pins.parts[number]
        question = [part.requires, part.index, requirement.system, requirement.python]
        name = f"pinned-{sha256(json_text.line(question))}"
        note = store.note(name)
        if note is None and env is None:
            return pins, ()
        if note is None:
            note = {"wheels": [asdict(wheel) for wheel in _asked(part, requirement, env or {}, processes)]}
            store.set_note(name, note)
        wheels = tuple(PinnedWheel(**wheel) for wheel in note["wheels"])
        found.append(Resolution(part=number, system=requirement.system, python=requirement.python, wheels=wheels))
    return updated(pins, tuple(found)), tuple(wheel for each in found for wheel in each.wheels)


def _asked(
    part: PinnedPart, requirement: Requirement, env: Mapping[str, str], processes: Processes
) -> tuple[PinnedWheel, ...]:
    platform = built_systems()[requirement.system].uv
    alone = ("--no-deps",) if part.only else ()
    options = (*alone, "--python-version", dotted(requirement.python), "--python-platform", platform)
    if part.index is not None:
        local = part.index.rstrip("/").rpartition("/")[2]
        with contextlib.suppress(UnresolvedError):
            wanted = tuple(f"{each}+{local}" for each in part.requires)
            return tuple(_wheels(_locked(wanted, *options, index=None, env=env, processes=processes), part.index))
    return tuple(_wheels(_locked(part.requires, *options, index=part.index, env=env, processes=processes), part.index))


class NoReleaseError(UnresolvedError):
    """The index answered, but has no such release."""


def released(
    requirement: str, *, pythons: tuple[str, ...], index: str | None, env: Mapping[str, str]
) -> tuple[IndexFile, ...]:
    """Return every file of the newest release that meets a requirement; `pythons` begins with the oldest.

    Without `index`, the default index is asked first, and the user's other indexes only if it has no such release,
    since uv lists the files of only one index.

    Raises:
        NoReleaseError: there is no such release.
        UnresolvedError: the index did not answer.
    """
    alone = {name: value for name, value in env.items() if name not in _OTHER_INDEXES - {"UV_INDEX_URL"}}
    try:
        return _released(requirement, pythons, index, alone)
    except UnresolvedError as error:
        if index is not None:
            raise
        try:
            return _released(requirement, pythons, index, env)
        except UnresolvedError:
            raise error from None


def _released(
    requirement: str, pythons: tuple[str, ...], index: str | None, env: Mapping[str, str]
) -> tuple[IndexFile, ...]:
    said = ""
    for python in pythons:  # uv omits files for older Pythons, and refuses releases without files for this one
        options = ("--universal", "--no-deps", "--python-version", dotted(python))
        try:
            packages = _locked((requirement,), *options, index=index, env=env)
        except UnresolvedError as error:
            said = error.message
            if _ABSENT.search(" ".join(said.split())) is None:
                raise
            continue
        # Several packages, if newer Pythons have a newer release.
        return _files(max(packages, key=lambda each: Version(each["version"].partition("+")[0])))
    raise NoReleaseError(said)


def wheels_of(
    requires: tuple[str, ...], *, base: PinSet, store: Store, env: Mapping[str, str], processes: Processes
) -> tuple[PinnedWheel, ...]:
    """Return the wheels that `base` lacks for the requirements of a load test; they are in no build key.

    They are chosen for this machine, which may accept newer wheels than the pinned ones.

    Raises:
        ToolError: no index has them, or no index can be reached.
    """
    if not requires:
        return ()
    have = sorted(wheel.name for wheel in base.wheels)
    question = json_text.line([requires, base.system, base.python, have])
    name = f"requires-{sha256(question)}"
    known = store.note(name)
    if known is not None:
        return tuple(PinnedWheel(**wheel) for wheel in known["wheels"])
    try:
        never = tuple(f"{name}; python_version < '0'" for name in have)
        python = ("--python-version", dotted(base.python))
        packages = _locked(requires, *python, index=None, env=env, overrides=never, processes=processes)
    except UnresolvedError as error:
        raise ToolError(
            f"the load test needs what [wheel] requires, and uv finds no wheels of it\n{error.message}",
            help="correct 'requires' in [wheel], or build without the load test, with '--load-test skip'",
        ) from error
    found = tuple(_wheels(packages, None))
    store.set_note(name, {"wheels": [asdict(wheel) for wheel in found]})
    return found
