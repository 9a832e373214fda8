"""What is wrong with a kernel that can be seen before a compiler runs."""

from collections.abc import Callable, Iterator

from builder.errors import Problem
from builder.kernel import Kernel
from builder.lint import backends, bounds, capabilities, files, license_, matrix, package, portability, registration
from builder.report import Located, locate

Check = Callable[[Kernel], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (
    backends.check,
    bounds.check,
    capabilities.check,
    files.check,
    license_.check,
    matrix.check,
    package.check,
    portability.check,
)
"""Each looks at the config, and at the files it names."""


def run(kernel: Kernel, file: str) -> tuple[Located, ...]:
    """Return what every check finds; `file` is the config as the user names it."""
    lines = kernel.source.text.split("\n")
    problems = [problem for check in CHECKS for problem in check(kernel)]
    found = [locate(file, problem, lines) for problem in problems]
    directory = package.directory(kernel.config)
    shown = f"{file.removesuffix('build.toml')}{directory}"
    return (*found, *registration.check(kernel.root / directory, shown))
