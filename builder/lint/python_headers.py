"""Sources that need Python: its headers, or a library for each Python by itself."""

from collections.abc import Iterator
from pathlib import Path

from builder.config import Backend, Framework
from builder.errors import BuilderError, Problem, Severity, Span
from builder.kernel import CONFIG, Kernel
from builder.lint.report import Located, locate
from builder.matrix import is_noarch
from builder.render import misnamed_modules, needs_python, python_obstacles, source_scan

_KEY = 'python-abi = "cpython"'
_OPS = "register ops with TORCH_LIBRARY_EXPAND in place of the module"


def check(kernel: Kernel) -> Iterator[Located]:
    """Yield what the sources of each backend need of Python.

    That is the first line that needs its headers; where the library is for one Python, all lines that keep it from
    serving every one.
    """
    if kernel.config.framework is not Framework.TORCH:
        return
    found: dict[Located, None] = {}
    all_read = not kernel.config.sources  # foreign sources are not here to be read
    for backend in dict.fromkeys(kernel.config.general.backends):
        if is_noarch(kernel.config, backend):
            continue
        try:
            found |= dict.fromkeys(_of_backend(kernel, backend))
        except BuilderError:
            all_read = False  # a file that is missing is another check's finding
    yield from found
    if all_read and not found and kernel.config.torch is not None and kernel.config.torch.python_abi is not None:
        yield _unneeded(kernel)


def _of_backend(kernel: Kernel, backend: Backend) -> Iterator[Located]:
    obstacles = python_obstacles(kernel, backend)
    if kernel.config.of_each_python(backend):
        yield from (_obstacle(use, kernel.root) for use in obstacles)
        yield from (_misnamed(use, kernel.root) for use in misnamed_modules(kernel, backend))
        return
    module = next((use for use in obstacles if not use.name.startswith("<") and not use.limited), None)
    if module is not None:
        yield _undeclared(module, kernel.root)
        return
    use = needs_python(kernel, backend)
    if use is not None:
        yield _headers(use, kernel.root)


def _headers(use: source_scan.Use, root: Path) -> Located:
    return _located(
        use,
        root,
        code="B125",
        message=f"{use.name} needs the headers of Python, so the wheel is tagged cp39-abi3 instead of py3-none",
        help=source_scan.REMEDY,
    )


def _undeclared(use: source_scan.Use, root: Path) -> Located:
    return _located(
        use,
        root,
        code="B141",
        message=f"{use.name} makes a module that uses all of Python's C API, which a wheel for every Python may not",
        help=f"add '{_KEY}' to [torch] for a wheel for each Python, or {_OPS}",
        severity="warning",
    )


def _obstacle(use: source_scan.Use, root: Path) -> Located:
    header = use.name.startswith("<")
    brings = "brings all of Python's C API" if header else "makes a module of Python"
    remedy = "include <torch/all.h> or <torch/library.h> if nothing of Python is used" if header else _OPS
    message = f"{use.name} {brings}: without it, one wheel could serve every Python"
    return _located(use, root, code="B142", message=message, help=remedy)


def _misnamed(use: source_scan.Use, root: Path) -> Located:
    return _located(
        use,
        root,
        code="B144",
        message=f"the module is called '{use.name}', and its library has a name that is made for each build",
        help="write TORCH_EXTENSION_NAME in its place, and import it with 'from ._ops import module'",
        severity="warning",
    )


def _unneeded(kernel: Kernel) -> Located:
    problem = kernel.source.problem(
        "B143",
        "no source needs a library for each Python: without 'python-abi', one wheel serves them all",
        path=("torch", "python-abi"),
        key=True,
        severity="warning",
        help="remove it",
    )
    return locate(str(kernel.root / CONFIG), problem, kernel.source.text.splitlines())


def _located(
    use: source_scan.Use,
    root: Path,
    *,
    code: str,
    message: str,
    help: str,  # noqa: A002  the word the message uses
    severity: Severity = "note",
) -> Located:
    text = (root / use.file).read_bytes().decode("utf-8", "replace").splitlines()
    line = text[use.line - 1] if use.line <= len(text) else ""
    column = line.find(use.name.strip("<>")) + 1 or 1
    span = Span(line=use.line, column=column, end_line=use.line, end_column=column + len(use.name))
    problem = Problem(code=code, message=message, severity=severity, span=span, help=help)
    return locate(str(root / use.file), problem, text)
