"""Unique symbols: a process has one of each, from the first library that defines it."""

from collections.abc import Iterator

from builder.audit.report import Finding
from builder.audit.subject import Subject

RULE = "unique-symbols"


def check(subject: Subject) -> Iterator[Finding]:
    """Name each STB_GNU_UNIQUE symbol: two kernels with the same inline static would share it."""
    for library in subject.libraries:
        for symbol in (*library.extension.defined, *library.extension.undefined):
            if symbol.binding == "unique":
                yield Finding(
                    file=library.name,
                    rule=RULE,
                    symbol=symbol.name,
                    why="the loader keeps one copy of it for the whole process, shared with every other kernel that "
                    "has the same name, and never unloads the library",
                    remedy="compile with -fno-gnu-unique (device compilers' host objects too: -Xcompiler)",
                )
