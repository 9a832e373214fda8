"""`python -m builder.ci`: the parts of a pipeline that the command `builder` does not have."""

import argparse
import contextlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from builder import terminal
from builder.ci.workflow import template
from builder.errors import BuilderError
from builder.wording import escaped, quoted, size

_HEAD = ("variant", "wheel", "size", "time", "sha256", "result")
_LONGEST = 300


def read(paths: Iterable[Path]) -> tuple[Mapping[str, Any], ...]:
    """Read the reports that `builder build --json` wrote.

    Raises:
        BuilderError: a file is missing or is not a report.
    """
    entries: list[Mapping[str, Any]] = []
    for path in paths:
        try:
            text = path.read_text(encoding="utf-8")
            # A build that stopped before its first cell wrote nothing; its message is in the log.
            found = json.loads(text) if text.strip() else []
        except OSError as error:
            raise BuilderError(f"cannot read {quoted(str(path))}: {error.strerror}") from error
        except ValueError as error:
            raise BuilderError(f"{quoted(str(path))} is not the report of `builder build --json`: {error}") from error
        own = _of_several(found) if isinstance(found, dict) else found
        if not isinstance(own, list) or not all(isinstance(one, dict) and "variant" in one for one in own):
            raise BuilderError(f"{quoted(str(path))} is not the report of `builder build --json`")
        entries += own
    return tuple(entries)


def _of_several(found: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the entries of several kernels, each with its kernel's folder, and an entry for each refused kernel."""
    kernels, errors = found.get("kernels"), found.get("errors")
    if not isinstance(kernels, dict) or not isinstance(errors, dict):
        return None
    if not all(isinstance(cells, list) for cells in kernels.values()):
        return None
    if not all(isinstance(cell, dict) and "variant" in cell for cells in kernels.values() for cell in cells):
        return None
    cells = [{**cell, "variant": f"{folder}: {cell['variant']}"} for folder in kernels for cell in kernels[folder]]
    return [*cells, *({"variant": folder, "status": "failed", "reason": why} for folder, why in errors.items())]


def markdown(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the table in Markdown; text of kernels and compilers cannot become markup."""
    if not entries:
        return "Nothing was built.\n"
    rows = [_HEAD, tuple("---" for _ in _HEAD), *map(_row, entries)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    path = None if entry.get("wheel") is None else Path(str(entry["wheel"]))
    measured = ""
    if path is not None:
        with contextlib.suppress(OSError):  # a report of another job, whose wheel is not on this machine
            measured = size(path.stat().st_size)
    words = {"hit": "taken from the store", "failed": "**failed**"}
    words |= {status: status for status in ("built", "compiled", "skipped")}
    result = words.get(str(entry.get("status")), _text(str(entry.get("status"))))
    reason = str(entry.get("reason") or "").split("\n", maxsplit=1)[0]
    return (
        _code(str(entry["variant"])),
        "" if path is None else _code(path.name),
        measured,
        f"{float(entry.get('seconds') or 0):.1f} s",
        _code(str(entry.get("sha256") or "")),
        f"{result}: {_text(reason)}" if reason else result,
    )


def _code(text: str) -> str:
    return f"`{_plain(text)}`" if text else ""


def _text(text: str) -> str:
    """Escape the characters of `text` that Markdown or HTML would read as markup."""
    return _plain("".join(f"&#{ord(each)};" if each in "&<>*_[]()#!~\\:@" else each for each in text))


def _plain(text: str) -> str:
    """Return the text on one line, without characters that end a cell or a code span."""
    return escaped(text[:_LONGEST]).replace("|", "&#124;").replace("`", "'")


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m builder.ci", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    summary = commands.add_parser("summary", help="what builds did, as a Markdown table")
    summary.add_argument("reports", nargs="+", type=Path, metavar="REPORT", help="output of `builder build --json`")
    commands.add_parser("gitlab-jobs", help="the template that GitLab jobs extend")
    asked = parser.parse_args(argv)
    if asked.command == "gitlab-jobs":
        terminal.document(template("gitlab-jobs.yml"))
        return 0
    try:
        terminal.document(markdown(read(asked.reports)))
    except BuilderError as error:
        terminal.err(f"error: {error}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
