"""A start from a `compile_commands.json`, for projects that CMake builds: its targets stand for extensions."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from builder.errors import BuilderError, NothingToDoError
from builder.port import commands
from builder.port.commands import Command
from builder.port.flags import Line
from builder.port.lines import GPU
from builder.port.recording import Extension, Recording, Run
from builder.port.settings import Setting, facts, toolkits
from builder.port.submodules import absent

_TARGET = re.compile(r"CMakeFiles/([^/]+)\.dir/")
_GIVEN = re.compile(r"/.*/(torch/include|include/python3[^/]*|(cuda|nvidia)[^/]*(/.*)?/include)(/.*)?")
"""Include folders of torch, Python and a toolkit, which every project has."""


def recording(path: Path, directory: Path) -> Recording:
    """Return what the compile lines of a project ask for, as a recording of one run.

    Raises:
        BuilderError: the file cannot be read.
        NothingToDoError: it compiles no source of the directory.
    """
    if not directory.is_dir():
        raise BuilderError(f"'{directory}' is not a folder", help="name the folder of the project")
    targets: dict[str, list[Command]] = {}
    for command in commands.read(path):
        targets.setdefault(_target(command), []).append(command)
    roots = {str(directory.resolve()): ""}
    found = {name: commands.lines(tuple(each), roots) for name, each in targets.items()}
    known = {name: {source: _plain(lines[0]) for source, lines in each.items()} for name, each in found.items() if each}
    if not known:
        raise NothingToDoError(
            f"'{path}' compiles no source of '{directory}'", help="name the folder that CMake was given with -S"
        )
    ordered = sorted(known.items(), key=lambda item: (-len(item[1]), item[0]))
    extensions = tuple(
        Extension(kind="CMake", name=name, at=path.name, sources=tuple(lines), lines=lines) for name, lines in ordered
    )
    on_gpu = any(line.language == GPU for lines in known.values() for line in lines.values())
    setting = Setting(name=path.name, cuda=toolkits()[-1], gpu=(9, 0)) if on_gpu else Setting(name=path.name)
    return Recording(runs=(Run(setting=setting, extensions=extensions),), absent=absent(directory))


def _target(command: Command) -> str:
    found = _TARGET.search(command.output or "")
    return "kernel" if found is None else found[1]


def _plain(line: Line) -> Line:
    """Return a line without what every rendered project has."""
    own = facts()["rendered"]
    ours = re.compile("|".join(f"(?:{each})" for each in own["flags"]))
    macros = {
        name: value
        for name, value in line.flags.macros.items()
        if name not in own["macros"] and not name.endswith("_EXPORTS")
    }
    rest = tuple(flag for flag in line.flags.rest if not ours.fullmatch(" ".join(flag)))
    return replace(line, flags=replace(line.flags, macros=macros, rest=rest), include=tuple(_folders(line.include)))


def _folders(folders: Iterable[str]) -> Iterable[str]:
    for folder in folders:
        if _GIVEN.fullmatch(folder) is None:
            yield folder
