"""The compile lines in a `compile_commands.json`, as CMake, ninja and other tools write it."""

import itertools
import os.path
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder import json_text
from builder.errors import BuilderError
from builder.port import flags
from builder.port.lines import CXX, GPU, Line, language, normal

_LARGEST = 256 << 20
_INCLUDES = ("-isystem", "-iquote", "-idirafter")
_NOT_FLAGS = frozenset({"-c", "-o"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One source and the words of its compiler, the compiler itself not among them."""

    directory: str
    source: str
    """Absolute path."""
    words: tuple[str, ...]
    output: str | None = None
    """Its object."""

    @property
    def language(self) -> str | None:
        """What compiles it: `-x cu` says so as well as a name."""
        pairs = itertools.pairwise(self.words)
        return GPU if any(pair in {("-x", "cu"), ("-x", "hip")} for pair in pairs) else language(self.source)


def read(path: Path) -> tuple[Command, ...]:
    """Return the lines of a file.

    Raises:
        BuilderError: it is no such file.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise BuilderError(f"'{path}' is larger than {_LARGEST >> 20} MiB", help="pass that of one project")
        entries = json_text.read(path)
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise _unreadable(path, str(error).splitlines()[0]) from None
    if not isinstance(entries, list):
        raise _unreadable(path, "it is not a list")
    return tuple(found for entry in entries if (found := _command(entry, path)) is not None)


def _unreadable(path: Path, why: str) -> BuilderError:
    return BuilderError(
        f"'{path}' cannot be read as compile commands: {why}",
        help="CMake writes one with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
    )


def _command(entry: object, path: Path) -> Command | None:
    match entry:
        case {"directory": str(directory), "file": str(file), "arguments": list(words)}:
            arguments = [word for word in words if isinstance(word, str)]
        case {"directory": str(directory), "file": str(file), "command": str(text)}:
            try:
                arguments = shlex.split(text)
            except ValueError as error:
                raise _unreadable(path, f"{error} in the command of '{file}'") from None
        case _:
            raise _unreadable(path, "an entry has no 'directory', 'file' and 'command'")
    source = os.path.normpath(os.path.join(directory, file))  # noqa: PTH118  text, of a machine that may be another
    named = entry.get("output") if isinstance(entry, dict) else None
    output = named or next((after for word, after in itertools.pairwise(arguments) if word == "-o"), None)
    return Command(
        directory=directory,
        source=source,
        words=tuple(_without_files(arguments[1:], file)),
        output=output if isinstance(output, str) else None,
    )


def _without_files(words: list[str], file: str) -> Iterator[str]:
    """Yield the words but the source and the object."""
    source = iter(words)
    for word in source:
        if word == "-o":
            next(source, None)
        elif word not in _NOT_FLAGS and word != file:
            yield word


def lines(commands: tuple[Command, ...], roots: dict[str, str]) -> dict[str, list[Line]]:
    """Return the lines of each source of a project; one that is compiled several times has several.

    `roots` has the name of each absolute folder, an empty one for that of the project: `/p/csrc` becomes `csrc`.
    """
    found: dict[str, list[Line]] = {}
    for command in commands:
        source = relative(command.source, roots)
        kind = command.language
        if kind is not None and not source.startswith(("/", "<", "..")):
            found.setdefault(source, []).append(_line(command, kind, roots))
    return found


def _line(command: Command, kind: str, roots: dict[str, str]) -> Line:
    include: dict[str, None] = {}
    rest: list[str] = []
    for flag in flags.group(command.words):
        folder = _folder(flag)
        if folder is None:
            rest += flag
        else:
            absolute = os.path.normpath(os.path.join(command.directory, folder))  # noqa: PTH118
            include[relative(absolute, roots)] = None
    return Line(language=kind if kind == GPU else CXX, flags=flags.read(rest), include=tuple(include))


def _folder(flag: flags.Flag) -> str | None:
    if flag[0] in {"-I", *_INCLUDES}:
        return flag[-1]
    return flag[0].removeprefix("-I") if flag[0].startswith("-I") else None


def relative(path: str, roots: dict[str, str]) -> str:
    """Return a path by the name of the longest folder that it is in."""
    for root in sorted(roots, key=len, reverse=True):
        if path == root or path.startswith(f"{root}/"):
            rest = normal(path.removeprefix(root).lstrip("/"))
            name = roots[root]
            return rest if not name else f"{name}:{rest}" if not name.startswith("<") else f"{name}/{rest}"
    return path
