"""Find the problems of a kernel before a compiler runs."""

from collections.abc import Callable, Iterator
from pathlib import Path

from builder.config import Framework, detect_schema, read
from builder.config.text import Source
from builder.errors import ConfigError, Problem
from builder.kernel import CONFIG, Kernel
from builder.kernel.source_set import package_directory
from builder.lint import cells, cxx_standard, declared, portability, registration, source_files
from builder.lint.findings import CheckReport, Located, locate

Check = Callable[[Kernel], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (
    declared.schema,
    declared.backends,
    declared.components,
    cells.bounds,
    cells.compiled_architectures,
    cxx_standard.check,
    declared.files,
    declared.foreign_sources,
    declared.licenses,
    cells.served_backends,
    portability.check,
    declared.rendering,
    cells.required_gpus,
)
"""Checks of the config, and of the files that it names."""
_UNTOLD = frozenset({"B001", "B002", "B003", "B004"})
"""The codes of problems after which the schema of a text is unknown."""


def inspect(directory: Path) -> CheckReport:
    """Return all problems of the kernel in `directory`, which may contain anything."""
    file = str(directory / CONFIG)
    try:
        source = Source.read(directory / CONFIG, name=file)
    except ConfigError as error:
        return CheckReport.of(file, None, [Located(file=file, problem=problem) for problem in error.problems])
    lines = source.text.split("\n")
    try:
        parsed = read(source)
    except ConfigError as error:
        found = [locate(file, problem, lines) for problem in error.problems]
        for package in sorted(path.parent for path in directory.glob("t*-ext/*/__init__.py")):
            found += registration.check(package, str(package), root=directory)
        untold = any(problem.code in _UNTOLD for problem in error.problems)
        return CheckReport.of(file, None if untold else detect_schema(source.table(), source), found)
    kernel = Kernel(root=directory, config=parsed.config, source=source, schema=parsed.schema)
    found = [locate(file, problem, lines) for check in CHECKS for problem in check(kernel)]
    for look in (source_files.python_headers, source_files.glibc, source_files.linked_headers):
        found += look(kernel)
    framework = parsed.config.framework
    if framework is not Framework.CTYPES:  # a plain library has no namespace
        package = directory / package_directory(parsed.config)
        found += registration.check(
            package,
            str(package),
            root=directory,
            tvm_ffi=framework is Framework.TVM_FFI,
            registered=source_files.registered_ops(kernel),
        )
    return CheckReport.of(file, parsed.schema, found)
