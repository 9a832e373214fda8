"""Values and files from which no project can be rendered, found before one is."""

from collections.abc import Iterator

from builder.config import Backend
from builder.errors import ConfigError, Problem
from builder.kernel import Kernel
from builder.kernel.tree import Tree
from builder.render import refusals


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield the values and files that a render would refuse, for every backend that has components."""
    tree = Tree.of(kernel.root)
    for backend in dict.fromkeys(kernel.config.general.backends):
        yield from _refused(kernel, tree, backend)


def _refused(kernel: Kernel, tree: Tree, backend: Backend) -> tuple[Problem, ...]:
    try:
        refusals.check(kernel, tree, backend, allow_unsafe_flags=False)
    except ConfigError as error:
        return error.problems
    return ()
