"""Sources that need Python's headers, which a kernel that registers ops does not."""

from collections.abc import Iterator
from pathlib import Path

from builder.config import Framework
from builder.errors import BuilderError, Problem, Span
from builder.kernel import Kernel
from builder.lint.report import Located, locate
from builder.matrix import is_noarch
from builder.render import needs_python, python_api


def check(kernel: Kernel) -> Iterator[Located]:
    """Yield a note for the first line of each backend's sources that needs Python's headers."""
    if kernel.config.framework is not Framework.TORCH:
        return
    for backend in dict.fromkeys(kernel.config.general.backends):
        if is_noarch(kernel.config, backend):
            continue
        try:
            use = needs_python(kernel, backend)
        except BuilderError:
            continue  # a file that is missing is another check's finding
        if use is not None:
            yield _located(use, kernel.root)


def _located(use: python_api.Use, root: Path) -> Located:
    text = (root / use.file).read_bytes().decode("utf-8", "replace").splitlines()
    line = text[use.line - 1] if use.line <= len(text) else ""
    column = line.find(use.name.strip("<>")) + 1 or 1
    problem = Problem(
        code="B125",
        message=f"{use.name} needs the headers of Python, so the wheel is tagged cp39-abi3 instead of py3-none",
        severity="note",
        span=Span(line=use.line, column=column, end_line=use.line, end_column=column + len(use.name)),
        help=python_api.REMEDY,
    )
    return locate(str(root / use.file), problem, text)
