"""Find old schemas, and backends, components, files, foreign sources and licenses that do not fit together."""

import posixpath
from collections.abc import Iterator

from builder.config import Backend, Framework
from builder.config.sources import foreign_path, writes_below
from builder.config.text import KeyPath
from builder.config.v5 import EDITION
from builder.config.wheel_values import license_problem
from builder.errors import ConfigError, Problem, Severity
from builder.kernel import Kernel
from builder.kernel.source_set import source_set
from builder.kernel.tree import Tree
from builder.render import refusals
from builder.wording import quoted


def schema(kernel: Kernel) -> Iterator[Problem]:
    """Report a preview edition, or a schema that is not the current one."""
    if kernel.schema > EDITION:
        message = f"edition {kernel.schema} is a preview: it may still change, and the public kernel-builder refuses it"
        remedy = f"write edition {EDITION} for what is released"
        path = ("general", "edition")
        yield kernel.source.problem("B134", message, path=path, severity="warning", help=remedy)
    elif kernel.schema < EDITION:
        message = f"this config is in schema {kernel.schema}, and the current one is edition {EDITION}"
        severity: Severity = "note" if kernel.schema == EDITION - 1 else "warning"
        remedy = "'builder update' rewrites it, and keeps comments and order"
        yield kernel.source.problem("B124", message, path=("general",), severity=severity, help=remedy)


def backends(kernel: Kernel) -> Iterator[Problem]:
    """Report an empty list of backends, duplicate backends, and backends that cannot have components."""
    named, problem = kernel.config.general.backends, kernel.source.problem
    if not named:
        remedy = 'name the backends that the kernel runs on, such as ["cpu", "cuda"]'
        message = "'general.backends' is empty: nothing is built"
        yield problem("B119", message, path=("general", "backends"), severity="warning", help=remedy)
    for index, backend in enumerate(named):
        path = ("general", "backends", index)
        if backend in named[:index]:
            message = f"backend '{backend}' is listed twice"
            yield problem("B119", message, path=path, severity="warning", help="remove one of the two")
        has_components = kernel.config.kernel and kernel.config.framework is not Framework.TORCH_NOARCH
        if has_components and not backend.facts.components:
            message = f"backend '{backend}' has only pure-Python kernels, and this one has components"
            remedy = f'its wheel will have no compiled op: remove "{backend}", or make a kernel with [torch-noarch]'
            yield problem("B103", message, path=path, severity="warning", help=remedy)


def components(kernel: Kernel) -> Iterator[Problem]:
    """Report components that are never built, and two versions of CUTLASS in one backend."""
    problem = kernel.source.problem
    first: dict[Backend, str] = {}
    for name, component in kernel.config.kernel.items():
        backend = component.backend
        if kernel.config.framework is Framework.TORCH_NOARCH:
            message = f"component {quoted(name)} is never built: a kernel with [torch-noarch] is pure Python"
            remedy = "replace [torch-noarch] by [torch], or remove the component"
            yield problem("B102", message, path=("kernel", name), key=True, severity="warning", help=remedy)
        elif backend not in kernel.config.general.backends:
            message = f"component {quoted(name)} is never built: backend '{backend}' is not in 'general.backends'"
            remedy = f"add \"{backend}\" to 'general.backends', or remove the component"
            yield problem("B101", message, path=("kernel", name, "backend"), severity="warning", help=remedy)
        for index, dependency in enumerate(component.depends):
            if not dependency.startswith("cutlass_"):
                continue
            other = first.setdefault(backend, dependency)
            if other != dependency:
                message = f"'{dependency}' beside '{other}': components of '{backend}' are built as one project"
                remedy = f"use one version of CUTLASS in every component of '{backend}'"
                path = ("kernel", name, "depends", index)
                yield problem("B109", message, path=path, severity="warning", help=remedy)


def files(kernel: Kernel) -> Iterator[Problem]:
    """Report files that a build would miss or that are listed twice, and missing include directories."""
    try:
        source_set(kernel)
    except ConfigError as error:
        yield from error.problems
    seen: set[tuple[KeyPath, str]] = set()
    for path, entry in kernel.config.entries("src"):
        here = (path[:-1], posixpath.normpath(entry))
        if here in seen:
            message = f"file {quoted(entry)} is listed twice"
            yield kernel.source.problem("B104", message, path=path, severity="warning", help="remove one of the two")
        seen.add(here)
    tree, config = Tree.of(kernel.root), kernel.config
    for path, entry in config.entries("include"):
        elsewhere = foreign_path(entry, config.sources) is not None or writes_below(entry, config.generate)
        if not elsewhere and not tree.is_directory(entry):
            message = f"include directory {quoted(entry)} does not exist"
            remedy = "it is relative to the directory of 'build.toml'"
            yield kernel.source.problem("B105", message, path=path, severity="warning", help=remedy)


def foreign_sources(kernel: Kernel) -> Iterator[Problem]:
    """Report foreign sources that no entry of `src` or `include` uses."""
    sources = kernel.config.sources
    named = (foreign_path(entry, sources) for _, entry in kernel.config.entries("src", "include"))
    used = {found.source for found in named if found is not None}
    for name in sources:
        if name not in used:
            message = (
                f"the foreign source '{name}' is fetched for every build, and nothing of it is compiled or included"
            )
            remedy = f"name a path of it in 'src' or 'include', such as \"{name}:include\", or remove the table"
            yield kernel.source.problem("B132", message, path=("sources", name), severity="warning", help=remedy)


def licenses(kernel: Kernel) -> Iterator[Problem]:
    """Report a license that is not an SPDX expression."""
    named: list[tuple[KeyPath, str | None]] = [(("general", "license"), kernel.config.general.license)]
    named += [(("sources", name, "license"), source.license) for name, source in kernel.config.sources.items()]
    for path, text in named:
        problem = None if text is None else license_problem(text)
        if problem is not None:
            message, remedy = problem
            yield kernel.source.problem("B114", message, path=path, severity="warning", help=remedy)


def rendering(kernel: Kernel) -> Iterator[Problem]:
    """Report the values and files that rendering would refuse, for every backend."""
    tree = Tree.of(kernel.root)
    for backend in dict.fromkeys(kernel.config.general.backends):
        yield from _refused(kernel, tree, backend)


def _refused(kernel: Kernel, tree: Tree, backend: Backend) -> tuple[Problem, ...]:
    try:
        refusals.check(kernel, tree, backend, allow_unsafe_flags=False)
    except ConfigError as error:
        return error.problems
    return ()
