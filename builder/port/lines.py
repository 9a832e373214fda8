"""The compile line of each source: as torch's BuildExtension would write it, or from a compile_commands.json."""

import itertools
import os.path
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from builder import json_text
from builder.errors import BuilderError, NothingToDoError
from builder.port import flags
from builder.port.flags import Flag, Line
from builder.port.recording import Extension, Recording, Run
from builder.port.settings import Setting, facts, toolkits
from builder.port.source_facts import absent

CXX, GPU = "cxx", "gpu"
_SUFFIXES = {".cu": GPU, ".hip": GPU, ".cpp": CXX, ".cc": CXX, ".cxx": CXX, ".c": CXX, ".c++": CXX, ".C": CXX}
_TOOLKITS = ("<cuda>", "<rocm>", "<torch>")


def language(source: str) -> str | None:
    """Return the language of a source; None for a file that is not compiled."""
    return _SUFFIXES.get(PurePosixPath(source).suffix)


def of_run(run: Run) -> Mapping[str, Mapping[str, Line]]:
    """Return the lines of each extension, by the extension's name and the source."""
    return {extension.name: of_extension(extension, hip=run.setting.hip is not None) for extension in run.extensions}


def architectures_of(run: Run) -> frozenset[str]:
    """Return the architectures that the flags of a run name."""
    lines = (line for each in of_run(run).values() for line in each.values())
    return frozenset(name for line in lines for name in line.flags.capabilities)


def of_extension(extension: Extension, *, hip: bool = False) -> Mapping[str, Line]:
    """Return the line of each source of an extension."""
    if extension.lines is not None:
        return extension.lines
    macros = [f"-D{name}" if value is None else f"-D{name}={value}" for name, value in extension.define_macros]
    macros += [f"-U{name}" for name in extension.undef_macros]
    own = facts()["hip" if hip else "nvcc"]["flags"]
    cxx = _with_folders([*macros, *extension.cxx_flags], CXX, extension)
    gpu = _with_folders([*macros, *own, *extension.nvcc_flags], GPU, extension)
    kinds = {source: language(source) for source in sorted(map(normal, extension.sources))}
    return {source: gpu if kind == GPU else cxx for source, kind in kinds.items() if kind is not None}


def _with_folders(words: list[str], kind: str, extension: Extension) -> Line:
    """Return a line from words that include an extension's include folders."""
    found = flags.read(words)
    named = [flag[0].removeprefix("-I") for flag in found.rest if flag[0].startswith("-I")]
    folders = (*extension.include_dirs, *named)
    include = dict.fromkeys(normal(folder) for folder in folders if not folder.startswith(_TOOLKITS))
    rest = tuple(flag for flag in found.rest if not flag[0].startswith("-I"))
    return Line(language=kind, flags=replace(found, rest=rest), include=tuple(include))


def normal(path: str) -> str:
    """Normalise a path: no `.`, doubled slashes or `..` that stay inside."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return ("/" if path.startswith("/") else "") + "/".join(parts) or "."


_LARGEST = 256 << 20
_INCLUDES = ("-isystem", "-iquote", "-idirafter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A source, and the words of its compile command without the compiler."""

    directory: str
    source: str
    """Absolute path."""
    words: tuple[str, ...]
    output: str | None = None
    """The path of its object."""

    @property
    def language(self) -> str | None:
        """The language of the source, by `-x cu` or by its name."""
        pairs = itertools.pairwise(self.words)
        return GPU if any(pair in {("-x", "cu"), ("-x", "hip")} for pair in pairs) else language(self.source)


def read_commands(path: Path) -> tuple[Command, ...]:
    """Return the lines of a file.

    Raises:
        BuilderError: the file is not a compile_commands.json.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise BuilderError(f"'{path}' is larger than {_LARGEST >> 20} MiB", help="pass that of one project")
        entries = json_text.read(path)
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise _unreadable(path, str(error).splitlines()[0]) from None
    if not isinstance(entries, list):
        raise _unreadable(path, "it is not a list")
    return tuple(_command(entry, path) for entry in entries)


def _unreadable(path: Path, why: str) -> BuilderError:
    return BuilderError(
        f"'{path}' cannot be read as compile commands: {why}",
        help="CMake writes one with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
    )


def _command(entry: object, path: Path) -> Command:
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
    pairs = list(itertools.pairwise(arguments))
    named = entry.get("output") if isinstance(entry, dict) else None
    output = named or next((word for before, word in pairs if before == "-o"), None)
    return Command(
        directory=directory,
        source=os.path.normpath(os.path.join(directory, file)),  # noqa: PTH118  text, of a machine that may be another
        words=tuple(word for before, word in pairs if before != "-o" and word not in {"-c", "-o", file}),
        output=output if isinstance(output, str) else None,
    )


def lines_of(commands: Iterable[Command], roots: dict[str, str]) -> dict[str, list[Line]]:
    """Return the compile lines of each source in a project; a source may be compiled several times.

    `roots` has a name for each absolute folder, and an empty name for the project: `/p/csrc` becomes `csrc`.
    """
    found: dict[str, list[Line]] = {}
    for command in commands:
        source, kind = relative(command.source, roots), command.language
        if kind is None or source.startswith(("/", "<", "..")):
            continue
        include: dict[str, None] = {}
        rest: list[str] = []
        for flag in flags.group(command.words):
            if flag[0].startswith("-I") or flag[0] in _INCLUDES:
                folder = flag[-1] if flag[0] in {"-I", *_INCLUDES} else flag[0].removeprefix("-I")
                absolute = os.path.normpath(os.path.join(command.directory, folder))  # noqa: PTH118
                include[relative(absolute, roots)] = None
            else:
                rest += flag
        line = Line(language=kind, flags=flags.read(rest), include=tuple(include))
        found.setdefault(source, []).append(line)
    return found


def relative(path: str, roots: dict[str, str]) -> str:
    """Return a path relative to the longest folder around it, with that folder's name."""
    for root in sorted(roots, key=len, reverse=True):
        if path == root or path.startswith(f"{root}/"):
            rest = normal(path.removeprefix(root).lstrip("/"))
            name = roots[root]
            return rest if not name else f"{name}:{rest}" if not name.startswith("<") else f"{name}/{rest}"
    return path


_TARGET = re.compile(r"CMakeFiles/([^/]+)\.dir/")
_GIVEN = re.compile(r"/.*/(torch/include|include/python3[^/]*|(cuda|nvidia)[^/]*(/.*)?/include)(/.*)?")
"""Include folders of torch, Python and toolkits, which every project has."""


def recording(path: Path, directory: Path) -> Recording:
    """Return the compile lines of a project as a recording of one run.

    Raises:
        BuilderError: the file cannot be read.
        NothingToDoError: it compiles no source of the directory.
    """
    if not directory.is_dir():
        raise BuilderError(f"'{directory}' is not a folder", help="name the folder of the project")
    targets: dict[str, list[Command]] = {}
    for command in read_commands(path):
        target = _TARGET.search(command.output or "")
        targets.setdefault("kernel" if target is None else target[1], []).append(command)
    roots = {str(directory.resolve()): ""}
    found = {name: lines_of(each, roots) for name, each in targets.items()}
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
    return Recording(runs=(Run(setting=setting, extensions=extensions, failure=None),), absent=absent(directory))


def _plain(line: Line) -> Line:
    """Return a line without the parts that every rendered project has."""
    macros = {name: value for name, value in line.flags.macros.items() if not is_rendered_macro(name)}
    rest = tuple(flag for flag in line.flags.rest if not is_rendered(flag))
    include = tuple(folder for folder in line.include if _GIVEN.fullmatch(folder) is None)
    return replace(line, flags=replace(line.flags, macros=macros, rest=rest), include=include)


def is_rendered_macro(name: str) -> bool:
    """Whether every rendered project defines a macro."""
    return name in facts()["rendered"]["macros"] or name.endswith("_EXPORTS")


def is_rendered(flag: Flag) -> bool:
    """Whether every rendered project passes a flag."""
    return any(re.fullmatch(each, " ".join(flag)) for each in facts()["rendered"]["flags"])
