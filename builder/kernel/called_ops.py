"""The ops that the Python files of a package call in the namespace of the build, and those that something may register.

An op that nothing registers fails at the first call, long after the package was imported.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from builder.kernel import Kernel
from builder.kernel.namespace import Module, qualified
from builder.kernel.source_set import source_set

_OP = re.compile(r"\._ops(?:_(?P<extension>[a-z0-9_]+))?\.ops\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)", re.ASCII)
_LITERAL = re.compile(r"""["'](?:[A-Za-z_]\w*::)?([A-Za-z_]\w*)""", re.ASCII)
_NO_OPS = frozenset({"name", "loaded_libraries"})
"""What every namespace of torch has besides ops."""


class CalledOp(NamedTuple):
    """A call of an op."""

    name: str
    extension: str
    """The extension whose ops it is looked up in; empty for those of the main library."""
    call: ast.expr
    """The expression that is called."""


def in_module(module: Module) -> Iterator[CalledOp]:
    """Yield the calls of ops of the generated modules of a package, in the order of the file."""
    for call, scope in module.calls:
        found = _OP.search(f".{qualified(call.func, scope) or ''}")
        if found is not None and found["name"] not in _NO_OPS and not found["name"].startswith("__"):
            yield CalledOp(found["name"], found["extension"] or "", call.func)


def in_package(package: Path) -> Iterator[tuple[str, CalledOp]]:
    """Yield the calls in a finished package, with their files; a file that cannot be read has none."""
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package.parent)
        parts = inside.parts[:-1] if inside.name == "__init__.py" else inside.with_suffix("").parts
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about strings of the file, such as '\d'
                tree = ast.parse(path.read_bytes())
            module = Module.of(tree, ".".join(parts), package=inside.name == "__init__.py")
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        yield from ((inside.as_posix(), called) for called in in_module(module))


def sources(kernel: Kernel) -> Iterator[str]:
    """Yield the text of each source and each Python file of a kernel, for all its backends.

    Raises:
        ConfigError: one is missing.
    """
    files = source_set(kernel)
    for path in files.paths:
        if path not in files.shipped or path.endswith(".py"):
            yield files.read(path).decode("utf-8", "replace")


def named(texts: Iterable[str]) -> frozenset[str]:
    """Return what strings of sources begin with, in C++ and in Python: `scale` of `"scale(Tensor x) -> Tensor"`.

    What registers an op has its name in a string, so an op that is in none of them is registered nowhere.
    """
    return frozenset(name for text in texts for name in _LITERAL.findall(text))
