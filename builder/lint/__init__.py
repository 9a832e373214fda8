"""Find what is wrong with a kernel before a compiler runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

from builder.config import Framework, detect_schema, read
from builder.config.text import Source
from builder.config.v5 import EDITION
from builder.errors import ConfigError, Problem, Severity
from builder.kernel import CONFIG, Kernel
from builder.kernel.source_set import package_directory
from builder.lint import architectures, cells, cxx_standard, declared, portability, registration, sources
from builder.lint.report import CheckReport, Located, locate

Check = Callable[[Kernel], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (
    declared.backends,
    declared.components,
    cells.bounds,
    architectures.compiled,
    cxx_standard.check,
    declared.files,
    declared.foreign_sources,
    declared.licenses,
    cells.served_backends,
    portability.check,
    declared.rendering,
    architectures.required_gpus,
)
"""Each looks at the config, and at the files that it names."""
_UNTOLD = frozenset({"B001", "B002", "B003", "B004"})
"""The codes of problems that leave the schema of a text unknown."""


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
        found += sources.python_headers(kernel)
        found += sources.glibc(kernel)
        found += sources.linked_headers(kernel)
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
        untold = any(problem.code in _UNTOLD for problem in error.problems)
        return None if untold else detect_schema(source.table(), source), list(error.problems), packages, None
    kernel = Kernel(root=root, config=parsed.config, source=source, schema=parsed.schema)
    problems = [problem for check in (_old, *CHECKS) for problem in check(kernel)]
    return parsed.schema, problems, [root / package_directory(kernel.config)], kernel


def _old(kernel: Kernel) -> Iterator[Problem]:
    """Yield that the edition is a preview, or that the schema is not the current one."""
    if kernel.schema > EDITION:
        message = f"edition {kernel.schema} is a preview: it may still change, and the public kernel-builder refuses it"
        remedy = f"write edition {EDITION} for what is released"
        yield kernel.source.problem("B134", message, path=("general", "edition"), severity="warning", help=remedy)
    elif kernel.schema < EDITION:
        message = f"this config is in schema {kernel.schema}, and the current one is edition {EDITION}"
        severity: Severity = "note" if kernel.schema == EDITION - 1 else "warning"
        remedy = "'builder update' rewrites it, and keeps comments and order"
        yield kernel.source.problem("B124", message, path=("general",), severity=severity, help=remedy)
