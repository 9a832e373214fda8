"""Calls to functions that are newer than glibc 2.28, the oldest one of a wheel, found before they are compiled."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

from builder import resources, toml
from builder.errors import BuilderError, Problem, Span
from builder.kernel import Kernel
from builder.kernel.source_set import source_set
from builder.lint.report import Located, locate

_LANGUAGES = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hip", ".hpp"})
_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
"""Comments and strings."""


def check(kernel: Kernel) -> Iterator[Located]:
    """Yield a warning for the first call, in each file, of each function that glibc 2.28 lacks."""
    try:
        files = source_set(kernel)
    except BuilderError:
        return  # a file that is missing is another check's finding
    for path in files.paths:
        if PurePosixPath(path).suffix in _LANGUAGES:
            text = files.read(path).decode("utf-8", "replace")
            yield from _of_file(str(kernel.root / path), text)


def _of_file(file: str, text: str) -> Iterator[Located]:
    if not any(name in text for name in _versions()):
        return  # which is a fourth of what looking for calls costs
    lines = text.split("\n")
    seen = set()
    for call in _calls().finditer(_TEXT.sub(_blank, text)):
        name = call[1]
        if name in seen:
            continue
        seen.add(name)
        line = text.count("\n", 0, call.start(1)) + 1
        column = call.start(1) - text.rfind("\n", 0, call.start(1))
        problem = Problem(
            code="B127",
            message=f"{name} is of glibc {_versions()[name]}, and a wheel runs on systems with 2.28",
            severity="warning",
            span=Span(line=line, column=column, end_line=line, end_column=column + len(name)),
            help="write it another way, or accept a newer policy with builder build --manylinux",
        )
        yield locate(file, problem, lines)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


@cache
def _calls() -> re.Pattern[str]:
    """Return what a call looks like: not of a member, nor of a namespace other than the outermost."""
    return re.compile(rf"(?<![\w.>])(?<!\w::)({'|'.join(_versions())})\s*\(")


@cache
def _versions() -> dict[str, str]:
    """Return function → version of glibc that brought it."""
    table = toml.loads((resources.DATA / "glibc-newer.toml").read_text(encoding="utf-8"))
    return {name: version for version, names in table.items() for name in names}
