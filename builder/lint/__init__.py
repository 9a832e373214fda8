"""What is wrong with a kernel that can be seen before a compiler runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

from builder.config import detect, read
from builder.config.v5 import EDITION
from builder.errors import ConfigError, Problem
from builder.kernel import CONFIG, Kernel
from builder.lint import backends, bounds, capabilities, files, license_, matrix, portability, registration, rendering
from builder.report import Located, Report, locate
from builder.source import Source
from builder.sources import package_directory

Check = Callable[[Kernel], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (
    backends.check,
    bounds.check,
    capabilities.check,
    files.check,
    license_.check,
    matrix.check,
    portability.check,
    rendering.check,
)
"""Each looks at the config, and at the files it names."""


def inspect(directory: Path) -> Report:
    """Return everything that is wrong with the kernel in `directory`, whatever it is."""
    file = str(directory / CONFIG)
    try:
        source = Source.read(directory / CONFIG, name=file)
    except ConfigError as error:
        return Report.of(file, None, [Located(file=file, problem=problem) for problem in error.problems])
    return Report.of(file, _edition(source), _findings(directory, source))


def _findings(root: Path, source: Source) -> Iterator[Located]:
    lines = source.text.split("\n")
    try:
        parsed = read(source)
        kernel = Kernel(root=root, config=parsed.config, source=source, schema=parsed.schema)
    except ConfigError as error:
        yield from (locate(source.name, problem, lines) for problem in error.problems)
        packages = sorted(path.parent for path in root.glob("t*-ext/*/__init__.py"))
    else:
        problems = [problem for check in (_old, *CHECKS) for problem in check(kernel)]
        yield from (locate(source.name, problem, lines) for problem in problems)
        packages = [root / package_directory(kernel.config)]
    for package in packages:
        yield from registration.check(package, str(package))


def _edition(source: Source) -> int | None:
    try:
        return detect.schema(source.table(), source)
    except ConfigError:
        return None


def _old(kernel: Kernel) -> Iterator[Problem]:
    if kernel.schema == EDITION:
        return
    yield kernel.source.problem(
        "B124",
        f"this config is in schema {kernel.schema}, and the current one is edition {EDITION}",
        path=("general",),
        severity="note" if kernel.schema == EDITION - 1 else "warning",
        help="'builder update' rewrites it, and keeps comments and order",
    )
