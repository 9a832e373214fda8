"""Layout: RECORD, names, `metadata.json`, its digest, and files that do not belong."""

from collections.abc import Iterator

from builder.audit import metadata, record
from builder.audit.report import Finding
from builder.audit.subject import Subject
from builder.config.values import Framework

RULE = "layout"

_BYTECODE = (".pyc", ".pyo")
_LEFT_OVER = (
    ".a", ".bak", ".d", ".ii", ".lib", ".log", ".ninja", ".o", ".obj", ".orig", ".rej", ".swp", ".tmp", "~",
)  # fmt: skip
_LEFT_OVER_NAMES = frozenset(("CMakeCache.txt", "CMakeLists.txt", "build.ninja", "compile_commands.json", "Makefile"))


def check(subject: Subject) -> Iterator[Finding]:
    """Judge the files of the wheel, and what they say about each other."""
    yield from record.check(subject)
    yield from _places(subject)
    yield from _libraries(subject)
    yield from metadata.check(subject)


def _finding(file: str, symbol: str, why: str, remedy: str) -> Finding:
    return Finding(file=file, rule=RULE, symbol=symbol, why=why, remedy=remedy)


def _places(subject: Subject) -> Iterator[Finding]:
    for required in (f"{subject.module}/__init__.py", f"{subject.module}/_ops.py"):
        if required not in subject.files:
            yield _finding(required, required, "the wheel lacks this file", "build the wheel again")
    for name in sorted(subject.files):
        top, _, rest = name.partition("/")
        base = name.rsplit("/", 1)[-1]
        if base.endswith(_BYTECODE) or "__pycache__" in name.split("/"):
            yield _finding(name, base, "bytecode belongs to one Python and to one machine", "leave it out")
        elif top not in (subject.module, subject.dist_info):
            yield _finding(
                name,
                top,
                f"a wheel of this kernel holds '{subject.module}/' and '{subject.dist_info}/', nothing else",
                "do not install it, or install it into the package",
            )
        elif base.startswith(".") or base.endswith(_LEFT_OVER) or base in _LEFT_OVER_NAMES:
            yield _finding(name, base, "it is a left-over of a build or of an editor", "leave it out")
        elif rest.startswith(f"{subject.module}/"):
            yield _finding(
                name,
                rest,
                f"'{subject.module}/' has a second '{subject.module}/' in it, which no import reaches",
                "move its files one directory up",
            )


def _libraries(subject: Subject) -> Iterator[Finding]:
    noarch = subject.facts is not None and subject.facts.framework is Framework.TORCH_NOARCH
    named = str(subject.plan.ops or subject.metadata.get("id") or "")
    expected = f"{subject.module}/{named}.abi3.so"
    if noarch:
        for library in subject.libraries:
            yield _finding(library.name, library.name, "a noarch wheel has no library", "build it for its backend")
        return
    if named and expected not in subject.files:
        yield _finding(
            expected, named, "the library that metadata.json names is not in the wheel", "build the wheel again"
        )
    for library in subject.libraries:
        if named and library.name != expected:
            yield _finding(
                library.name,
                library.name,
                f"only '{expected}' belongs to the package",
                "link its code into that library",
            )
        elif subject.facts is not None and subject.facts.framework is Framework.TORCH:
            yield from _module(library.name, library.extension.modules, named)


def _module(file: str, modules: tuple[str, ...], named: str) -> Iterator[Finding]:
    if named and named not in modules:
        yield _finding(
            file,
            f"PyInit_{named}",
            f"the library cannot be imported as '{named}': it defines {', '.join(modules) or 'no module'}",
            "use REGISTER_EXTENSION(TORCH_EXTENSION_NAME)",
        )
