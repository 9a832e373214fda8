"""Check symbols that other libraries in a process can see: exports of a plain library, and unique symbols."""

from collections.abc import Iterator

from builder.audit.report import Finding
from builder.audit.subject import Subject
from builder.config.source_tables import ExportGlob, exported
from builder.config.values import Framework

RULE = "exports"
UNIQUE_RULE = "unique-symbols"

_SHOWN = 80
_MOST = 1000
"""The most globs that a wheel may promise: each is compared with every symbol."""


def check(subject: Subject) -> Iterator[Finding]:
    """Compare the exports of each plain library with its promises in `metadata.json`."""
    if subject.facts is None or subject.facts.framework is not Framework.CTYPES:
        return
    globs = subject.metadata.exports
    if not globs or len(globs) > _MOST or not all(map(ExportGlob.matches, globs)):
        why = "it names no functions, and a plain library has some"
        yield Finding(f"{subject.module}/metadata.json", RULE, "exports", why)
        return
    for library in subject.libraries:
        names = frozenset(symbol.name for symbol in library.extension.defined)
        for glob in globs:
            if not exported(names, (glob,)):
                yield Finding(
                    library.name,
                    RULE,
                    glob[:_SHOWN],
                    "it exports no function of this name",
                    "declare it extern \"C\", compile the source that defines it, or take it out of 'exports'",
                )
        for name in sorted(names - exported(names, globs)):
            yield Finding(
                library.name,
                RULE,
                name[:_SHOWN],
                "it exports this, and 'exports' does not name it: another library of the process may take it for its "
                "own",
                "add it to 'exports', or keep it local",
            )


def check_unique(subject: Subject) -> Iterator[Finding]:
    """Report each STB_GNU_UNIQUE symbol: two kernels with the same inline static variable would share it."""
    for library in subject.libraries:
        for symbol in (*library.extension.defined, *library.extension.undefined):
            if symbol.binding == "unique":
                yield Finding(
                    library.name,
                    UNIQUE_RULE,
                    symbol.name,
                    "the loader keeps one copy of it for the whole process, shared with every other kernel that "
                    "has the same name, and never unloads the library",
                    "compile with -fno-gnu-unique (device compilers' host objects too: -Xcompiler)",
                )
