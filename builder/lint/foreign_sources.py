"""Foreign sources that a kernel fetches for nothing."""

from collections.abc import Iterator

from builder.config.sources import foreign_path
from builder.errors import Problem
from builder.kernel import Kernel
from builder.lint import files


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield the foreign sources that no entry of `src` or `include` names."""
    sources = kernel.config.sources
    entries = (entry for _, entry in (*files.listed(kernel.config), *files.included(kernel.config)))
    used = {found.source for entry in entries if (found := foreign_path(entry, sources)) is not None}
    for name in sources:
        if name not in used:
            yield kernel.source.problem(
                "B132",
                f"the foreign source '{name}' is fetched for every build, and nothing of it is compiled or included",
                path=("sources", name),
                severity="warning",
                help=f"name a path of it in 'src' or 'include', such as \"{name}:include\", or remove the table",
            )
