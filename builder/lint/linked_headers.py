"""Headers of CUDA's libraries that a source includes and the kernel does not name, found before they are compiled."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from builder.config import Backend, Framework, libraries
from builder.errors import BuilderError, Problem, Span
from builder.kernel import Kernel
from builder.kernel.source_set import source_set
from builder.lint.report import Located, locate

_LANGUAGES = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp"})
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([A-Za-z][\w.]*)[>"]', re.MULTILINE)


def check(kernel: Kernel) -> Iterator[Located]:
    """Yield a warning for the first header, in each file, of each library that has to be named."""
    config = kernel.config
    if Backend.CUDA not in config.general.backends or config.framework is Framework.TORCH_NOARCH:
        return
    try:
        files = source_set(kernel, backend=Backend.CUDA)
    except BuilderError:
        return  # a file that is missing is another check's finding
    named = {name.facts.part for name in config.libraries(Backend.CUDA)}
    classic = config.framework is Framework.TORCH and config.stable_abi(Backend.CUDA) is None
    there = {*named, *(("libraries",) if classic else ())}  # what torch's own headers include is there
    for path in files.paths:
        if PurePosixPath(path).suffix in _LANGUAGES:
            text = files.read(path).decode("utf-8", "replace")
            yield from _of_file(str(kernel.root / path), text, there)


def _of_file(file: str, text: str, there: set[str | None]) -> Iterator[Located]:
    seen: set[str] = set()
    for found in _INCLUDE.finditer(text):
        name = libraries.of_header(found[1])
        if name is None or name.facts.part in there or name in seen:
            continue
        seen.add(name)
        line = text.count("\n", 0, found.start(1)) + 1
        column = found.start(1) - text.rfind("\n", 0, found.start(1))
        problem = Problem(
            code="B133",
            message=f"{found[1]} comes with {name}, which the environment of a build only has where a kernel names it",
            severity="warning",
            span=Span(line=line, column=column, end_line=line, end_column=column + len(found[1])),
            help=f'write libraries = ["{name}"] in [torch] or in the component',
        )
        yield locate(file, problem, text.split("\n"))
