"""Layout: RECORD, names, `metadata.json`, its digest, and files that do not belong."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from builder.audit import metadata, record
from builder.audit.report import Finding
from builder.audit.subject import Library, Subject
from builder.config.values import Framework
from builder.wording import listed

RULE = "layout"

_BYTECODE = (".pyc", ".pyo")
_LEFT_OVER = (
    ".a", ".bak", ".d", ".ii", ".lib", ".log", ".ninja", ".o", ".obj", ".orig", ".rej", ".swp", ".tmp", "~",
)  # fmt: skip
_ACTED_ON = frozenset(("entry_points.txt",))
"""Files of the `.dist-info` directory that others act on: these are the commands and plugins of a package."""
_SHOWN = 10
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
    modules = ("__init__", subject.generated, *(f"{subject.generated}_{name}" for name in subject.extensions))
    for required in (f"{subject.module}/{name}.py" for name in modules):
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
        elif top == subject.dist_info and rest.casefold() in _ACTED_ON:
            yield _finding(
                name,
                rest,
                "it adds commands or plugins to every environment that the wheel is installed in, and a kernel is only "
                "imported",
                "leave it out",
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
    main = subject.library
    expected: dict[str | None, str] = {None: main} if main else {}
    expected |= {name: subject.file_of(ops) for name, ops in subject.extensions.items() if main}
    if noarch:
        for library in subject.libraries:
            yield _finding(library.name, library.name, "a noarch wheel has no library", "build it for its backend")
        return
    for file in expected.values():
        if file not in subject.files:
            yield _finding(
                file, file, "the library that metadata.json names is not in the wheel", "build the wheel again"
            )
    modules = {file: "_ops.py" if name is None else f"_ops_{name}.py" for name, file in expected.items()}
    for library in subject.libraries:
        if expected and library.name not in modules:
            yield _finding(
                library.name,
                library.name,
                f"only {listed(modules)} {'belong' if modules.keys() > {main} else 'belongs'} to the package",
                "link its code into that library",
            )
        elif subject.facts is not None and subject.facts.framework is Framework.TORCH:
            yield from _module(subject, library, modules.get(library.name, "_ops.py"))


def _module(subject: Subject, library: Library, file: str) -> Iterator[Finding]:
    """Judge a library that `_ops.py` imports as a Python module; one that is loaded by `load_library` is not one."""
    named = PurePosixPath(library.name).name.partition(".")[0]
    if not subject.library or named in library.extension.modules or not _imports(subject, file, named):
        return
    modules = ", ".join(library.extension.modules[:_SHOWN]) or "no module"
    yield _finding(
        library.name,
        f"PyInit_{named}",
        f"'{file}' imports the library as '{named}': it defines {modules}",
        "name the module TORCH_EXTENSION_NAME, as in PYBIND11_MODULE(TORCH_EXTENSION_NAME, m), or load the library "
        "with torch.ops.load_library",
    )


def _imports(subject: Subject, file: str, named: str) -> bool:
    text = subject.text(f"{subject.module}/{file}").decode("utf-8", "replace")
    return re.search(rf"^from \. import {re.escape(named)}$", text, re.MULTILINE) is not None
