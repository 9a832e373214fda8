"""A license that tools cannot read."""

from collections.abc import Iterator

from builder.config.text import KeyPath
from builder.config.wheel_values import license_problem
from builder.errors import Problem
from builder.kernel import Kernel


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield a license that is not an SPDX expression."""
    licenses: list[tuple[KeyPath, str]] = [(("general", "license"), kernel.config.general.license)]
    for name, source in kernel.config.sources.items():
        licenses += [] if source.license is None else [(("sources", name, "license"), source.license)]
    for path, text in licenses:
        problem = license_problem(text)
        if problem is not None:
            message, remedy = problem
            yield kernel.source.problem("B114", message, path=path, severity="warning", help=remedy)
