"""A license that tools cannot read."""

from collections.abc import Iterator

from builder.config.license import problem_of
from builder.errors import Problem
from builder.kernel import Kernel


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield a license that is not an SPDX expression."""
    problem = problem_of(kernel.config.general.license)
    if problem is not None:
        message, remedy = problem
        yield kernel.source.problem("B114", message, path=("general", "license"), severity="warning", help=remedy)
