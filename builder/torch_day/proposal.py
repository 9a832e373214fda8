"""A proposal: the new texts of data files, with a source for each new line; shown as a diff, or written."""

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.errors import NothingToDoError, ToolError
from builder.kernel.git import Checkout, object_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedLine:
    """A line of the new text."""

    text: str
    source: str | None = None
    """The origin of the line; None for an old line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """The new text of a data file."""

    name: str
    old: str
    new: tuple[ProposedLine, ...]

    @property
    def text(self) -> str:
        """The new content of the file."""
        text = "\n".join(line.text for line in self.new)
        return f"{text}\n" if self.old.endswith("\n") else text

    def added(self) -> Iterator[tuple[int, ProposedLine]]:
        """Yield the new lines, each with its number."""
        texts = [line.text for line in self.new]
        matcher = difflib.SequenceMatcher(None, self.old.splitlines(), texts, autojunk=False)
        for tag, _, _, begin, end in matcher.get_opcodes():
            start, size = begin, end - begin
            if tag == "insert":  # a line that begins like the next one is found too late
                while start and not self.new[start + size - 1].source and texts[start - 1] == texts[start + size - 1]:
                    start -= 1
            if tag in ("insert", "replace"):
                yield from ((number + 1, self.new[number]) for number in range(start, start + size))

    def diff(self, folder: str) -> str:
        """Return the sources of the new lines, then a diff for `git apply`."""
        path = f"{folder}/{self.name}" if folder else self.name
        lines = difflib.unified_diff(
            self.old.splitlines(keepends=True),
            self.text.splitlines(keepends=True),
            fromfile=f"a/{path}",
            tofile=f"b/{path}",
        )
        marked = (line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
        return "".join((*self._sources(path), *marked))

    def _sources(self, path: str) -> Iterator[str]:
        """Yield a line for each range of new lines with the same source; blank lines have none."""
        ranges: list[tuple[int, int, str | None]] = []
        blank: set[int] = set()
        for number, line in self.added():
            if not line.text:
                blank.add(number)
            elif ranges and ranges[-1][2] == line.source and blank.issuperset(range(ranges[-1][1] + 1, number)):
                ranges[-1] = (ranges[-1][0], number, line.source)
            else:
                ranges.append((number, number, line.source))
        for first, last, source in ranges:
            yield f"# {path}:{first if first == last else f'{first}-{last}'}: {source or 'moved'}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The changes for a release."""

    edits: tuple[FileEdit, ...]
    notes: tuple[str, ...]
    """Things that a person has to look at."""

    def diff(self, folder: str) -> str:
        """Return all diffs; empty if nothing changes."""
        return "\n".join(edit.diff(folder) for edit in self.edits)


def folder_in_checkout(data: Path) -> str:
    """Return the path of the data folder in its checkout, as a diff needs it."""
    checkout = Checkout.around(data)
    return "" if checkout is None else checkout.inside


def require_unedited(data: Path, names: tuple[str, ...]) -> None:
    """Refuse files that differ from the last commit.

    Raises:
        NothingToDoError: a file differs, or git cannot tell.
    """
    checkout = Checkout.around(data)
    files = None if checkout is None else checkout.regular_files("HEAD")
    if files is None:
        raise NothingToDoError(
            f"'{data}' is in no commit of git, so nobody can tell what was edited",
            help="work in a checkout, or pass --over-edits",
        )
    objects = {name: files.get(name) for name in names}
    edited = [
        name
        for name, known in objects.items()
        if known is None or object_of((data / name).read_bytes(), like=known) != known
    ]
    if edited:
        raise NothingToDoError(
            f"files with local edits would be written over: {', '.join(edited)}",
            help="commit or drop the edits, or pass --over-edits; nothing was written",
        )


def write(proposal: Proposal, data: Path) -> None:
    """Write every file, or none.

    Raises:
        NothingToDoError: a file was changed since it was read.
        ToolError: a file cannot be written; all files are unchanged.
    """
    changed = [edit.name for edit in proposal.edits if (data / edit.name).read_text(encoding="utf-8") != edit.old]
    if changed:
        raise NothingToDoError(
            f"changed meanwhile: {', '.join(changed)}", help="run the command again; nothing was written"
        )
    aside = {data / edit.name: data / f".{edit.name}.{os.getpid()}.part" for edit in proposal.edits}
    replaced: list[FileEdit] = []
    try:
        for edit in proposal.edits:
            aside[data / edit.name].write_text(edit.text, encoding="utf-8", newline="\n")
        for edit in proposal.edits:
            aside[data / edit.name].replace(data / edit.name)
            replaced.append(edit)
    except OSError as error:
        for edit in replaced:
            (data / edit.name).write_text(edit.old, encoding="utf-8", newline="\n")
        raise ToolError(
            f"cannot write the data files: {error}", help="make room, or the folder writable; nothing was changed"
        ) from error
    finally:
        for path in aside.values():
            path.unlink(missing_ok=True)
