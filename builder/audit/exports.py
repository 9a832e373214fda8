"""Symbols that other libraries of a process could meet: exports of a plain library, and unique symbols of any."""

from collections.abc import Iterator

from builder.audit.report import Finding
from builder.audit.subject import Library, Subject
from builder.config.source_tables import ExportGlob, exported
from builder.config.values import Framework

RULE = "exports"

_SHOWN = 80
_MOST = 1000
"""Globs that a wheel may promise: each is compared with every symbol."""
UNIQUE_RULE = "unique-symbols"


def check(subject: Subject) -> Iterator[Finding]:
    """Compare what each plain library exports with what `metadata.json` promises."""
    if subject.facts is None or subject.facts.framework is not Framework.CTYPES:
        return
    globs = _promised(subject)
    if not globs:
        path = f"{subject.module}/metadata.json"
        yield _finding(path, "exports", "it names no functions, and a plain library has some", "build the wheel again")
        return
    for library in subject.libraries:
        yield from _library(library, globs)


def _promised(subject: Subject) -> tuple[str, ...]:
    found = subject.metadata.exports
    return found if len(found) <= _MOST and all(map(ExportGlob.matches, found)) else ()


def _library(library: Library, globs: tuple[str, ...]) -> Iterator[Finding]:
    names = frozenset(symbol.name for symbol in library.extension.defined)
    for glob in globs:
        if not exported(names, (glob,)):
            yield _finding(
                library.name,
                glob[:_SHOWN],
                "it exports no function of this name",
                "declare it extern \"C\", compile the source that defines it, or take it out of 'exports'",
            )
    for name in sorted(names - exported(names, globs)):
        yield _finding(
            library.name,
            name[:_SHOWN],
            "it exports this, and 'exports' does not name it: another library of the process may take it for its own",
            "add it to 'exports', or keep it local",
        )


def _finding(file: str, symbol: str, why: str, remedy: str) -> Finding:
    return Finding(file=file, rule=RULE, symbol=symbol, why=why, remedy=remedy)


def check_unique(subject: Subject) -> Iterator[Finding]:
    """Name each STB_GNU_UNIQUE symbol: two kernels with the same inline static would share it."""
    for library in subject.libraries:
        for symbol in (*library.extension.defined, *library.extension.undefined):
            if symbol.binding == "unique":
                yield Finding(
                    file=library.name,
                    rule=UNIQUE_RULE,
                    symbol=symbol.name,
                    why="the loader keeps one copy of it for the whole process, shared with every other kernel that "
                    "has the same name, and never unloads the library",
                    remedy="compile with -fno-gnu-unique (device compilers' host objects too: -Xcompiler)",
                )
