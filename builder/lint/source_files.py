"""Find lines of sources that need a newer glibc, a library that is not named, or Python; and read their ops."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from builder import resources, toml
from builder.config import Backend, Framework, libraries
from builder.errors import BuilderError, Problem, Severity, Span
from builder.kernel import CONFIG, Kernel, called_ops
from builder.kernel.source_set import source_set
from builder.lint.findings import Located, locate
from builder.matrix import is_noarch
from builder.render import python_scan, source_scan

_CUDA_LANGUAGES = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp"})
_LANGUAGES = _CUDA_LANGUAGES | {".hip"}
_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
"""Comments and strings."""
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([A-Za-z][\w.]*)[>"]', re.MULTILINE)
_DEFINED = re.compile(r"(?:\.|->)[ \t]*def[ \t]*\(\s*(\S)")
_KEY = 'python-abi = "cpython"'
_HEADERS = "include <torch/all.h> or <torch/library.h> if nothing of Python is used"
_OPS = "register ops with TORCH_LIBRARY_EXPAND in place of the module"


def glibc(kernel: Kernel) -> Iterator[Located]:
    """Warn at the first call, in each file, of each function that glibc 2.28 lacks."""
    versions, calls = _versions()
    for file, text in _texts(kernel, None, _LANGUAGES):
        if not any(name in text for name in versions):
            continue  # a quarter of the time that looking for calls takes
        code = _TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        first: dict[str, re.Match[str]] = {}
        for call in calls.finditer(code):
            first.setdefault(call[1], call)
        for name, call in first.items():
            message = f"{name} is of glibc {versions[name]}, and a wheel runs on systems with 2.28"
            remedy = "write it another way, or accept a newer policy with builder build --manylinux"
            yield _warning(call, file, text, code="B127", message=message, help=remedy)


def _texts(kernel: Kernel, backend: Backend | None, suffixes: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield each source of a kernel with one of the suffixes, and its text."""
    try:
        files = source_set(kernel, backend=backend)
    except BuilderError:
        return  # another check reports a missing file
    for path in files.paths:
        if PurePosixPath(path).suffix in suffixes:
            yield str(kernel.root / path), files.read(path).decode("utf-8", "replace")


def _warning(found: re.Match[str], file: str, text: str, *, code: str, message: str, help: str) -> Located:
    """Return the finding for the first group of a match in a text."""
    line = text.count("\n", 0, found.start(1)) + 1
    column = found.start(1) - text.rfind("\n", 0, found.start(1))
    span = Span(line=line, column=column, end_line=line, end_column=column + len(found[1]))
    problem = Problem(code=code, message=message, severity="warning", span=span, help=help)
    return locate(file, problem, text.split("\n"))


@cache
def _versions() -> tuple[dict[str, str], re.Pattern[str]]:
    """Return function -> the glibc version that added it, and a pattern for a call of one of them.

    The pattern does not match calls of members, or of functions in namespaces.
    """
    table = toml.loads((resources.DATA / "glibc-newer.toml").read_text(encoding="utf-8"))
    versions = {name: version for version, names in table.items() for name in names}
    return versions, re.compile(rf"(?<![\w.>])(?<!\w::)({'|'.join(versions)})\s*\(")


def registered_ops(kernel: Kernel) -> frozenset[str] | None:
    """Return the ops that sources may register for any backend; None where a registration cannot be read.

    It cannot where it is in sources that are not here yet, or where a macro makes the name of an op.
    """
    config = kernel.config
    if config.framework is Framework.TORCH_NOARCH:
        return frozenset()  # Python alone registers them
    if config.framework is not Framework.TORCH or config.sources or config.generate:
        return None
    try:
        texts = list(called_ops.sources(kernel))
    except BuilderError:
        return None  # a file that is missing is another check's finding
    literal = False
    for text in texts:
        for found in _DEFINED.finditer(text):
            if found[1] != '"':
                return None
            literal = True
    return called_ops.named(texts) if literal else None


def linked_headers(kernel: Kernel) -> Iterator[Located]:
    """Warn at the first header, in each file, of each CUDA library that the config must declare."""
    config = kernel.config
    if Backend.CUDA not in config.general.backends or config.framework is Framework.TORCH_NOARCH:
        return
    there = {name.facts.part for name in config.libraries(Backend.CUDA)}
    if config.framework is Framework.TORCH and config.stable_abi(Backend.CUDA) is None:
        there.add("libraries")  # torch's own headers include it, so it is installed
    for file, text in _texts(kernel, Backend.CUDA, _CUDA_LANGUAGES):
        first: dict[libraries.LibraryName, re.Match[str]] = {}
        for include in _INCLUDE.finditer(text):
            name = libraries.of_header(include[1])
            if name is not None and name.facts.part not in there:
                first.setdefault(name, include)
        for name, include in first.items():
            where = "which the environment of a build only has where a kernel names it"
            message = f"{include[1]} comes with {name}, {where}"
            remedy = f'write libraries = ["{name}"] in [torch] or in the component'
            yield _warning(include, file, text, code="B133", message=message, help=remedy)


def python_headers(kernel: Kernel) -> Iterator[Located]:
    """Report source lines that need Python, by backend.

    This is the first line that needs Python's headers or, for a library of one Python, each line that prevents one
    library for all Pythons.
    """
    torch = kernel.config.torch
    if torch is None:
        return
    found: dict[Located, None] = {}
    all_read = not kernel.config.sources  # foreign sources are not available here
    for backend in dict.fromkeys(kernel.config.general.backends):
        if is_noarch(kernel.config, backend):
            continue
        try:
            found |= dict.fromkeys(_of_backend(kernel, backend))
        except BuilderError:
            all_read = False  # another check reports a missing file
    yield from found
    if all_read and not found and torch.python_abi is not None:
        message = "no source needs a library for each Python: without 'python-abi', one wheel serves them all"
        path = ("torch", "python-abi")
        problem = kernel.source.problem("B143", message, path=path, key=True, severity="warning", help="remove it")
        yield locate(str(kernel.root / CONFIG), problem, kernel.source.text.splitlines())


def _of_backend(kernel: Kernel, backend: Backend) -> Iterator[Located]:
    scan = python_scan(kernel, backend)
    if kernel.config.of_each_python(backend):
        for use in scan.obstacles:
            header = use.name.startswith("<")
            brings = "brings all of Python's C API" if header else "makes a module of Python"
            message = f"{use.name} {brings}: without it, one wheel could serve every Python"
            remedy = _HEADERS if header else _OPS
            yield _located(use, kernel.root, code="B142", message=message, help=remedy)
        for use in scan.misnamed:
            message = f"the module is called '{use.name}', and its library has a name that is made for each build"
            remedy = "write TORCH_EXTENSION_NAME in its place, and import it with 'from ._ops import module'"
            yield _located(use, kernel.root, code="B144", message=message, help=remedy, severity="warning")
        return
    module = next((use for use in scan.obstacles if not use.name.startswith("<") and not use.limited), None)
    headers = scan.needs_headers
    if module is not None:
        message = (
            f"{module.name} makes a module that uses all of Python's C API, which a wheel for every Python may not"
        )
        remedy = f"add '{_KEY}' to [torch] for a wheel for each Python, or {_OPS}"
        yield _located(module, kernel.root, code="B141", message=message, help=remedy, severity="warning")
    elif headers is not None:
        message = f"{headers.name} needs the headers of Python, so the wheel is tagged cp39-abi3 instead of py3-none"
        yield _located(headers, kernel.root, code="B125", message=message, help=source_scan.REMEDY)


def _located(
    use: source_scan.Use, root: Path, *, code: str, message: str, help: str, severity: Severity = "note"
) -> Located:
    text = (root / use.file).read_bytes().decode("utf-8", "replace").splitlines()
    line = text[use.line - 1] if use.line <= len(text) else ""
    column = line.find(use.name.strip("<>")) + 1 or 1
    span = Span(line=use.line, column=column, end_line=use.line, end_column=column + len(use.name))
    problem = Problem(code=code, message=message, severity=severity, span=span, help=help)
    return locate(str(root / use.file), problem, text)
