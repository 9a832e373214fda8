"""What is wrong with a kernel that can be seen before a compiler runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

from builder.config import Framework, detect_schema, read
from builder.config.text import Source
from builder.config.v5 import EDITION
from builder.errors import ConfigError, Problem
from builder.kernel import CONFIG, Kernel
from builder.kernel.source_set import package_directory
from builder.lint import (
    backends,
    bounds,
    capabilities,
    cxx_standard,
    files,
    foreign_sources,
    glibc,
    linked_headers,
    matrix,
    portability,
    python_headers,
    registration,
    rendering,
    required_gpus,
    spdx,
)
from builder.lint.report import CheckReport, Located, locate

Check = Callable[[Kernel], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (
    backends.check,
    bounds.check,
    capabilities.check,
    cxx_standard.check,
    files.check,
    foreign_sources.check,
    spdx.check,
    matrix.check,
    portability.check,
    rendering.check,
    required_gpus.check,
)
"""Each looks at the config, and at the files it names."""


def inspect(directory: Path) -> CheckReport:
    """Return everything that is wrong with the kernel in `directory`, whatever it is."""
    file = str(directory / CONFIG)
    try:
        source = Source.read(directory / CONFIG, name=file)
    except ConfigError as error:
        return CheckReport.of(file, None, [Located(file=file, problem=problem) for problem in error.problems])
    lines = source.text.split("\n")
    edition, problems, packages, kernel = _problems(directory, source)
    found = [locate(file, problem, lines) for problem in problems]
    if kernel is not None:
        found += python_headers.check(kernel)
        found += glibc.check(kernel)
        found += linked_headers.check(kernel)
    plain = kernel is not None and kernel.config.framework is Framework.CTYPES  # it has no namespace to use
    for package in () if plain else packages:
        of_tvm_ffi = None if kernel is None else kernel.config.framework is Framework.TVM_FFI
        found += registration.check(package, str(package), root=directory, tvm_ffi=of_tvm_ffi)
    return CheckReport.of(file, edition, found)


def _problems(root: Path, source: Source) -> tuple[int | None, list[Problem], list[Path], Kernel | None]:
    """Return the edition of a config, its problems, the Python packages to read, and the kernel if it can be read."""
    try:
        parsed = read(source)
    except ConfigError as error:
        packages = sorted(path.parent for path in root.glob("t*-ext/*/__init__.py"))
        return _edition(source, error), list(error.problems), packages, None
    kernel = Kernel(root=root, config=parsed.config, source=source, schema=parsed.schema)
    problems = [problem for check in (_old, *CHECKS) for problem in check(kernel)]
    return parsed.schema, problems, [root / package_directory(kernel.config)], kernel


def _edition(source: Source, error: ConfigError) -> int | None:
    if any(problem.code in _UNTOLD for problem in error.problems):
        return None
    return detect_schema(source.table(), source)


_UNTOLD = frozenset({"B001", "B002", "B003", "B004"})
"""Codes of problems that leave the schema of a text unknown."""


def _old(kernel: Kernel) -> Iterator[Problem]:
    if kernel.schema > EDITION:
        yield kernel.source.problem(
            "B134",
            f"edition {kernel.schema} is a preview: it may still change, and the public kernel-builder refuses it",
            path=("general", "edition"),
            severity="warning",
            help=f"write edition {EDITION} for what is released",
        )
    if kernel.schema >= EDITION:
        return
    yield kernel.source.problem(
        "B124",
        f"this config is in schema {kernel.schema}, and the current one is edition {EDITION}",
        path=("general",),
        severity="note" if kernel.schema == EDITION - 1 else "warning",
        help="'builder update' rewrites it, and keeps comments and order",
    )
