"""Find the variables without which a `setup.py` compiles nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.errors import BuilderError
from builder.port.record import record
from builder.port.recording import Recording, Run
from builder.port.settings import facts
from builder.wording import listed

_MOST = 40
"""Variables that are tried."""
_SHOWN = 3
_VALUES = ("1", "TRUE")
"""Values that switch something on, the usual one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A variable that makes a `setup.py` compile something."""

    text: str
    """`NAME=VALUE`."""
    extensions: tuple[str, ...]

    def __str__(self) -> str:
        more = self.extensions[_SHOWN:]
        return f"{self.text} compiles {listed(self.extensions[:_SHOWN])}" + (f" and {len(more)} more" if more else "")


def unset(recording: Recording) -> dict[str, str]:
    """Return the variables that `setup.py` reads and was not given, each with the line of its first use."""
    found = {name: place for run in recording.runs for name, place in run.variables.items()}
    usual = (*facts()["usual-variables"], *recording.given)
    return {name: place for name, place in sorted(found.items()) if not name.startswith(usual)}


def said(recording: Recording) -> str:
    """Return these variables as a text."""
    return ", ".join(f"{name} ({place})" for name, place in unset(recording).items())


def remedy_of(recording: Recording) -> str | None:
    """Return what to do about the variables that were not given; None where there are none."""
    names = said(recording)
    return f"it reads variables, which --env NAME=VALUE gives it: {names}" if names else None


def pretended(recording: Recording, directory: Path) -> tuple[str, str] | None:
    """Return which modules stand-ins replaced, and what to do where these make what is compiled; None without any."""
    names = recording.pretended
    if not names:
        return None
    are = "is" if len(names) == 1 else "are"
    said = f"{listed(names)} {are} not there, and a stand-in answered, which writes no source"
    beside = f"put what it needs beside setup.py: pip install --target {directory} {' '.join(names)}"
    built = "build it once as it says, and pass --compile-commands FILE, which 'ninja -t compdb' writes"
    return said, f"{beside}; or {built}"


def nothing_compiled(recording: Recording, directory: Path) -> BuilderError:
    """Return the error for a `setup.py` that ended well, and compiles nothing."""
    best = recording.best
    at = "" if best is None or best.setup is None else f"{best.setup.at}: "
    remedy = remedy_of(recording)
    replaced = pretended(recording, directory)
    if replaced is not None:
        said = f"{at}setup() is given no extension, so that nothing is compiled\n  {replaced[0]}"
        return BuilderError(said, help=replaced[1])
    if (directory / "CMakeLists.txt").is_file():
        remedy = "if CMake compiles it, pass --compile-commands FILE: the compile_commands.json of its build folder"
    return BuilderError(f"{at}setup() is given no extension, so that nothing is compiled", help=remedy)


def needs_some(
    recording: Recording,
    directory: Path,
    *,
    home: Path | None,
    given: Mapping[str, str],
    sandboxed: bool,
    seconds: float,
) -> BuilderError | None:
    """Return the error that offers variables, each tried alone; None where `setup.py` compiles something without."""
    best = recording.best
    if best is None or best.extensions:
        return None
    names = list(unset(recording))[:_MOST]
    for value in _VALUES if names else ():
        found = []
        for name in names:
            variables = {**given, name: value}
            tried = record(
                directory, home=home, variables=variables, sandboxed=sandboxed, seconds=seconds, among=(best.setting,)
            )
            found += [_switch(f"{name}={value}", run) for run in tried.runs if run.failure is None and run.extensions]
        if found:
            lines = "".join(f"\n  {each}" for each in found)
            options = " ".join(f"--env {each.text}" for each in _fewest(found))
            at = "" if best.setup is None else f"{best.setup.at}: "
            return BuilderError(
                f"{at}setup() is given no extension until a variable is set{lines}",
                help=f"name what you want: builder port {options} {directory}",
            )
    return nothing_compiled(recording, directory)


def _fewest(found: list[Switch]) -> list[Switch]:
    """Return the variables that give every extension, those that give most of them first."""
    kept: list[Switch] = []
    for each in sorted(found, key=lambda each: -len(each.extensions)):
        if set(each.extensions) - {name for other in kept for name in other.extensions}:
            kept.append(each)
    return kept


def _switch(text: str, run: Run) -> Switch:
    return Switch(text=text, extensions=tuple(dict.fromkeys(each.name for each in run.extensions)))
