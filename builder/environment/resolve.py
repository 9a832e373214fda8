"""Write the pin file anew: uv resolves each part, for each Python and system, to files and hashes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

from builder import toml
from builder.environment.fetch import LIMITS
from builder.environment.indexes import uv_binary
from builder.errors import ToolError
from builder.matrix import systems
from builder.matrix.variant import dotted
from builder.pins import Part, PinnedWheel, Pins, pin_file
from builder.run import run

DEPLOYMENT_TARGET = "14.0"
"""The macOS that torch's own wheels require."""
_OTHER_INDEXES = frozenset({"UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_FIND_LINKS"})
"""Left out where a part has an index of its own, which alone decides."""

HEADER = """\
# The wheels of every build environment: read by builder/pins/pin_file.py and builder/nix/pins.nix, written by
# `builder pins update`, which resolves the `requires` of each part and keeps what it cannot reach.
#
# pythons       the Pythons that are resolved
# environment   for each kind of cell the parts that make its environment, `name` or `name/compute`;
#               of several lists the first that is pinned for the Python and system counts
# part          files by system and Python (`any`: whatever the Python). `version` and `compute` say which cells
#               it serves (all, when absent), `only` what is kept of what was resolved, and `index` where the
#               files are published when that is not the default index. Nothing required, nothing to pin.
# wheel         what each file is, once
"""


class UnresolvedError(ToolError):
    """uv found no wheels for a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinTarget:
    """A part for one system and Python, which uv resolves at once."""

    part: int
    system: str
    python: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What resolving one target gave: its wheels, or why it keeps what it has."""

    target: PinTarget
    wheels: tuple[PinnedWheel, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HashCheck:
    """What the indexes say about the pins."""

    wrong: tuple[tuple[PinnedWheel, str | None], ...] = ()
    """Pins with another hash there, with it; None where the index does not have the file."""
    unknown: tuple[tuple[PinnedWheel, str], ...] = ()
    """Pins that could not be checked, with the reason."""


def targets(pins: Pins, *, parts: frozenset[str] = frozenset()) -> Iterator[PinTarget]:
    """Yield each target; if parts are named, only theirs."""
    for number, part in enumerate(pins.parts):
        if part.requires and (not parts or part.name in parts):
            for system, pythons in part.wheels.items():
                anywhere = pin_file.ANY in pythons
                for python in (pin_file.ANY,) if anywhere else pins.pythons:
                    yield PinTarget(part=number, system=system, python=python)


def resolve_all(
    pins: Pins, todo: tuple[PinTarget, ...], *, env: Mapping[str, str], progress: Callable[[Resolution], None]
) -> tuple[Resolution, ...]:
    """Resolve every target, several at once; where an index cannot be reached, only its targets fail."""
    uv = uv_binary()  # once: sysconfig, which it asks, is not safe in threads

    def one(target: PinTarget) -> Resolution:
        python = pins.pythons[0] if target.python == pin_file.ANY else target.python
        try:
            wheels = resolve(pins.parts[target.part], system=target.system, python=python, uv=uv, env=env)
            resolution = Resolution(target=target, wheels=wheels)
        except UnresolvedError as error:
            resolution = Resolution(target=target, error=error.message)
        progress(resolution)
        return resolution

    with ThreadPoolExecutor(max_workers=4) as pool:
        return tuple(pool.map(one, todo))


def resolve(part: Part, *, system: str, python: str, uv: str, env: Mapping[str, str]) -> tuple[PinnedWheel, ...]:
    """Return the wheels uv chooses for a part.

    Raises:
        UnresolvedError: no index has them, or none can be reached.
    """
    target = ("--python-version", dotted(python), "--python-platform", systems.built()[system].uv)
    packages = lock(part.requires, *target, index=part.index, uv=uv, env=env)
    files = (_files(package)[0] for package in packages)
    wheels = tuple(_wheel(file, sha256, index=part.index) for file, sha256 in files)
    return tuple(wheel for wheel in wheels if not part.only or wheel.name in part.only)


def of_requirements(
    requires: tuple[str, ...], *, without: Iterable[str], python: str, env: Mapping[str, str]
) -> tuple[PinnedWheel, ...]:
    """Return the wheels uv chooses for requirements, but those of the packages `without` and what only they need.

    They are for this machine, which may take newer wheels than those that are pinned for all.

    Raises:
        UnresolvedError: no index has them, or none can be reached.
    """
    target = ("--python-version", dotted(python))
    never = tuple(f"{name}; python_version < '0'" for name in without)
    packages = lock(requires, *target, index=None, uv=uv_binary(), env=env, overrides=never)
    return tuple(_wheel(*_files(package)[0], index=None) for package in packages)


def lock(
    requires: tuple[str, ...],
    *options: str,
    index: str | None,
    uv: str,
    env: Mapping[str, str],
    overrides: tuple[str, ...] = (),
) -> list[dict[str, Any]]:
    """Return the packages of the lock file that uv writes for `requires`.

    Raises:
        UnresolvedError: no index has them, or none can be reached.
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
            *(uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:"),
            *("--no-config", *options, "--output-file", str(locked), str(wanted)),
        )
        done = run(argv, cwd=Path(scratch), env=env, limits=LIMITS)
        if done.returncode != 0:
            raise UnresolvedError(done.output.strip())
        packages: list[dict[str, Any]] = toml.loads(locked.read_text(encoding="utf-8"))["packages"]
        return packages


def _files(package: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return name and hash of each wheel of a package in a lock file."""
    return tuple((name_of(wheel), wheel["hashes"]["sha256"]) for wheel in package.get("wheels", ()))


def name_of(wheel: Mapping[str, Any]) -> str:
    """Return the file name of a wheel in a lock file."""
    return str(wheel.get("name") or unquote(urlsplit(wheel.get("url") or wheel["path"]).path).rpartition("/")[2])


def _wheel(file: str, sha256: str, *, index: str | None) -> PinnedWheel:
    name, version, *_ = file.split("-")
    return PinnedWheel(file=file, name=pin_file.normalized(name), version=version, sha256=sha256, index=index)


def verify(pins: Pins, *, env: Mapping[str, str], progress: Callable[[str], None]) -> HashCheck:
    """Ask the indexes for the hash of every pinned file."""
    uv = uv_binary()
    platforms = _platforms(pins)
    releases: dict[tuple[str, str, str | None], list[PinnedWheel]] = {}
    for wheel in pins.wheels.values():
        releases.setdefault((wheel.name, wheel.version, wheel.index), []).append(wheel)

    def one(wheels: list[PinnedWheel]) -> HashCheck:
        progress(f"{wheels[0].name} {wheels[0].version}")
        try:
            published = _published(wheels[0], platforms[wheels[0].file], uv=uv, env=env, universal=True)
            for wheel in wheels:  # an index that has some files of a release hides what the next one has
                if wheel.file not in published:
                    published |= _published(wheel, platforms[wheel.file], uv=uv, env=env, universal=False)
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
    """Return for each file a system and a Python, the oldest, that it is pinned for."""
    return {
        file: (system, pins.pythons[0] if python == pin_file.ANY else python)
        for part in pins.parts
        for system, pythons in part.wheels.items()
        for python, files in sorted(pythons.items(), reverse=True)
        for file in files
    }


def _published(
    wheel: PinnedWheel, target: tuple[str, str], *, uv: str, env: Mapping[str, str], universal: bool
) -> dict[str, str]:
    """Return name and hash of the files of a release: all that one index has, or the best for one system."""
    system, python = target
    platform = ("--universal",) if universal else ("--python-platform", systems.built()[system].uv)
    options = (*platform, "--no-deps", "--python-version", dotted(python))
    packages = lock((f"{wheel.name}=={wheel.version}",), *options, index=wheel.index, uv=uv, env=env)
    return dict(file for package in packages for file in _files(package))


def updated(pins: Pins, resolutions: tuple[Resolution, ...]) -> Pins:
    """Return the pins with each target that was resolved replaced, and unused wheels gone."""
    wheels = dict(pins.wheels)
    tables = [{system: dict(table) for system, table in part.wheels.items()} for part in pins.parts]
    for resolution in resolutions:
        if resolution.error is None:
            target = resolution.target
            wheels |= {wheel.file: wheel for wheel in resolution.wheels}
            files = sorted(wheel.file for wheel in resolution.wheels)
            tables[target.part][target.system][target.python] = tuple(files)
    parts = tuple(replace(part, wheels=table) for part, table in zip(pins.parts, tables, strict=True))
    used = {file for part in parts for table in part.wheels.values() for files in table.values() for file in files}
    kept = {file: wheel for file, wheel in wheels.items() if file in used}
    return replace(pins, parts=parts, wheels=kept)


def to_toml(pins: Pins) -> str:
    """Spell the pins as their file: one text for one content."""
    lines = [HEADER, f"pythons = {toml.spelled(list(pins.pythons))}", "", "[environment]"]
    for kind, recipes in pins.recipes.items():
        lines.append(f"{kind} = [{', '.join(toml.spelled(list(recipe)) for recipe in recipes)}]")
    for part in pins.parts:
        lines += ["", "[[part]]", *_part(part)]
    lines += ["", "[wheel]"]
    lines += [_facts(pins.wheels[file]) for file in sorted(pins.wheels, key=str.lower)]
    return "\n".join(lines) + "\n"


def _part(part: Part) -> Iterator[str]:
    yield f"name = {toml.spelled(part.name)}"
    yield f"about = {toml.spelled(part.about)}"
    if part.version is not None:
        yield f"version = {toml.spelled(part.version)}"
    if part.compute:
        yield f"compute = {toml.spelled(list(part.compute))}"
    yield f"requires = {toml.spelled(list(part.requires))}"
    if part.only:
        yield f"only = {toml.spelled(list(part.only))}"
    if part.index is not None:
        yield f"index = {toml.spelled(part.index)}"
    for system in sorted(part.wheels):
        yield f"[part.wheels.{system}]"
        for python, files in sorted(part.wheels[system].items()):
            if len(files) == 1:
                yield f"{python} = {toml.spelled(list(files))}"
            else:
                yield from (f"{python} = [", *(f"  {toml.spelled(file)}," for file in files), "]")


def _facts(wheel: PinnedWheel) -> str:
    facts = ", ".join(f"{key} = {toml.spelled(getattr(wheel, key))}" for key in ("name", "version", "sha256"))
    return f"{toml.spelled(wheel.file)} = {{ {facts} }}"
