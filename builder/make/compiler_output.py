"""Read the output of a build: the errors and warnings of its compilers, with the paths that the user knows."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_TOOL = re.compile(r"\[\d+/\d+\] |ninja: |FAILED: |\*\*\* |-- |wheel: |Call Stack ")
"""The start of a line of ninja, CMake or scikit-build-core; the lines that follow are of another program."""
_FAILED = "FAILED: "
_ERROR = re.compile(r".*: (?:(?:fatal|catastrophic) )?error:|CMake Error|nvcc fatal")
_HEAD = re.compile(
    r"(?P<file>[^\s:(][^:(]*)(?::(?P<line>\d+)(?::\d+)?|\((?P<row>\d+)\)): "
    r"(?:(?:fatal|catastrophic) )?(?P<kind>error|warning|note|remark)\b"
)
"""The first line of a message of GCC, Clang or nvcc."""
_UNPLACED = re.compile(r"(?:nvcc|ptxas|cc1plus|cudafe\+\+|clang(?:\+\+)?) *:? ?(?P<kind>warning)\b")
"""The first line of a warning that names no file."""
_CONTEXT = re.compile(
    r"In file included from |\s+from \S+:\d+[,:]|.*: (?:In |At )\S.*:$|(?P<file>[^\s:(][^:(]*):\d+(?::\d+)?:\s+"
    r"(?:recursively )?required (?:from|by) |\[ skipping \d+ "
)
"""A line of GCC that belongs to the message after it."""
_SNIPPET = re.compile(r"\s*\d* \| ?")
_CLANG_USER = re.compile(r"(?P<file>[^\s:(][^:(]*):\d+(?::\d+)?: note: in instantiation of ")
_NVCC_USER = re.compile(r"\s+instantiation of .* at line (?P<line>\d+)(?: of (?P<file>\S+))?$")
_LINKER = re.compile(r"collect2: |.*: linker command failed")
"""The error of a compiler whose linker failed; the lines before it are the linker's."""
_OF_LINKER = 10
"""The most lines of the linker that are shown."""
_OF_MESSAGE = 8
"""The most lines after the first one of a message."""
_MOST = 20
_MOST_WARNINGS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPaths:
    """The user's names of the folders of a build."""

    sources: Path
    """The project's folder in the build."""
    root: Path | None
    """The kernel's folder as the user named it; None if it cannot be seen from here."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Names of other folders, by their paths in the build."""

    def shown(self, line: str) -> str:
        """Return a line with the user's paths; a generated file, which the user has not, is named in the project."""
        for inside, outside in self.others.items():
            line = line.replace(f"{inside}/", f"{outside}/")
        prefix = f"{self.sources}/"
        if prefix not in line:
            return line
        return re.sub(rf"{re.escape(prefix)}([^\s:()'\"\u2019,;]+)", lambda match: self._of_project(match[1]), line)

    def is_users(self, path: str) -> bool:
        """Whether a path in the build is a file of the project."""
        return path.startswith(f"{self.sources}/")

    def _of_project(self, path: str) -> str:
        if self.root is None or not (self.root / path).is_file():
            return path
        return str(self.root / path)


UNKNOWN = KnownPaths(sources=Path("/no-sources"), root=None)
"""No names, for output of a build elsewhere."""


@dataclass(slots=True)
class _Message:
    """A message of a compiler."""

    kind: str
    before: list[str]
    """The lines about the files and templates that led to it."""
    head: str
    after: list[str] = field(default_factory=list)

    def lines(self, paths: KnownPaths) -> list[str]:
        """Return its lines, those of the project first: which line of the user's instantiated a template."""
        match = _HEAD.match(self.head)
        own = match is not None and paths.is_users(match["file"])
        asked = [] if match is None else list(self._asked(match["file"], paths))
        rest = _trimmed(self.after)[: _MOST if match is None else _OF_MESSAGE]
        if own:
            return [self.head, *rest, *(line for line in asked if line not in rest)]
        loose = self.before[:_OF_LINKER] if _LINKER.match(self.head) else []
        return [*asked, *loose, self.head, *(line for line in rest if line not in asked)]

    def _asked(self, file: str, paths: KnownPaths) -> Iterator[str]:
        """Yield the lines about the project's lines that instantiated a template, the outermost first."""
        found: list[list[str]] = []
        for line in self.before:
            match = _CONTEXT.match(line)
            if match is not None:
                is_own = match["file"] is not None and paths.is_users(match["file"])
                found.append([line] if is_own else [])
            elif found and found[-1] and _SNIPPET.match(line):
                found[-1].append(line)
        for line in self.after:
            match = _CLANG_USER.match(line)
            if match is not None and paths.is_users(match["file"]):
                found.append([line])
                continue
            match = _NVCC_USER.match(line)
            if match is not None and paths.is_users(place := (match["file"] or file).strip("\"'")):
                found.append([f"{place}({match['line']}): required from here"])
        for lines in reversed(found):
            yield from lines


def is_error(line: str) -> bool:
    """Whether a line is the first one of an error."""
    return _ERROR.match(line) is not None


def errors(lines: Sequence[str], paths: KnownPaths) -> tuple[str, ...]:
    """Return the lines of the errors, without lines of ninja and CMake; the last lines if there is no error."""
    found = [message for part in _parts(lines) for message in _messages(part) if message.kind == "error"]
    if not found:
        return tuple(map(paths.shown, lines[-_MOST:]))
    shown = [paths.shown(line) for message in found for line in message.lines(paths)]
    if len(shown) > _MOST:
        count = "1 error" if len(found) == 1 else f"{len(found)} errors"
        shown = [*shown[:_MOST], f"… {len(shown) - _MOST} more lines; {count} in all"]
    return tuple(shown)


def warnings(lines: Sequence[str], paths: KnownPaths) -> tuple[str, ...]:
    """Return each warning of the compilers once, as lines."""
    found = (message for part in _parts(lines) for message in _messages(part) if message.kind == "warning")
    texts = ("\n".join(map(paths.shown, message.lines(paths))) for message in found)
    return tuple(dict.fromkeys(texts))[:_MOST_WARNINGS]


def _parts(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines of each program that ninja or CMake ran, without their own lines."""
    part: list[str] = []
    skips = False
    for line in lines:
        if _TOOL.match(line):
            yield part
            part, skips = [], line.startswith(_FAILED)
        elif skips and not _ERROR.match(line):
            skips = False  # the command that failed
        else:
            skips = False
            part.append(line)
    yield part


def _messages(lines: Iterable[str]) -> Iterator[_Message]:
    """Yield the messages in the output of one program."""
    message: _Message | None = None
    before: list[str] = []
    for line in lines:
        match = _HEAD.match(line) or _UNPLACED.match(line)
        kind = "error" if match is None and _ERROR.match(line) else None if match is None else match["kind"]
        if kind in {"note", "remark"} and message is not None:
            message.after += [*(each for each in before if not _CONTEXT.match(each)), line]
            before = []
        elif kind in {"error", "warning"}:
            if message is not None:
                yield message
            message, before = _Message(kind=kind, before=before, head=line), []
        elif _CONTEXT.match(line) or message is None or before:
            before.append(line)
        else:
            message.after.append(line)
    if message is not None:
        yield message


def _trimmed(lines: Sequence[str]) -> Sequence[str]:
    """Return lines without the empty ones at the end, and without nvcc's advice and count."""
    kept = [line for line in lines if not line.startswith("Remark: The warnings can be suppressed")]
    kept = [line for line in kept if not re.match(r"\d+ errors? detected in the compilation of ", line)]
    while kept and not kept[-1].strip():
        kept.pop()
    return kept
