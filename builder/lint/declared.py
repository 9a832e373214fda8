"""Find backends, components, files, foreign sources and licenses that do not fit together."""

import posixpath
from collections.abc import Iterator

from builder.config import Backend, Config, Framework
from builder.config.sources import foreign_path, writes_below
from builder.config.text import KeyPath
from builder.config.wheel_values import license_problem
from builder.errors import ConfigError, Problem
from builder.kernel import Kernel
from builder.kernel.source_set import source_set
from builder.kernel.tree import Tree
from builder.render import refusals
from builder.wording import quoted


def backends(kernel: Kernel) -> Iterator[Problem]:
    """Yield components that nothing builds, and backends that cannot have components."""
    yield from _listed_backends(kernel)
    yield from _components(kernel)
    yield from _noarch_only(kernel)
    yield from _cutlass(kernel)


def _listed_backends(kernel: Kernel) -> Iterator[Problem]:
    backends = kernel.config.general.backends
    if not backends:
        yield kernel.source.problem(
            "B119",
            "'general.backends' is empty: nothing is built",
            path=("general", "backends"),
            severity="warning",
            help='name the backends that the kernel runs on, such as ["cpu", "cuda"]',
        )
    for index, backend in enumerate(backends):
        if backend in backends[:index]:
            yield kernel.source.problem(
                "B119",
                f"backend '{backend}' is listed twice",
                path=("general", "backends", index),
                severity="warning",
                help="remove one of the two",
            )


def _components(kernel: Kernel) -> Iterator[Problem]:
    for name, component in kernel.config.kernel.items():
        if kernel.config.framework is Framework.TORCH_NOARCH:
            yield kernel.source.problem(
                "B102",
                f"component {quoted(name)} is never built: a kernel with [torch-noarch] is pure Python",
                path=("kernel", name),
                key=True,
                severity="warning",
                help="replace [torch-noarch] by [torch], or remove the component",
            )
        elif component.backend not in kernel.config.general.backends:
            yield kernel.source.problem(
                "B101",
                f"component {quoted(name)} is never built: backend '{component.backend}' is not in 'general.backends'",
                path=("kernel", name, "backend"),
                severity="warning",
                help=f"add \"{component.backend}\" to 'general.backends', or remove the component",
            )


def _noarch_only(kernel: Kernel) -> Iterator[Problem]:
    if not kernel.config.kernel or kernel.config.framework is Framework.TORCH_NOARCH:
        return
    for index, backend in enumerate(kernel.config.general.backends):
        if not backend.facts.components:
            yield kernel.source.problem(
                "B103",
                f"backend '{backend}' has only pure-Python kernels, and this one has components",
                path=("general", "backends", index),
                severity="warning",
                help=f'its wheel will have no compiled op: remove "{backend}", or make a kernel with [torch-noarch]',
            )


def _cutlass(kernel: Kernel) -> Iterator[Problem]:
    first: dict[Backend, str] = {}
    for name, component in kernel.config.kernel.items():
        for index, dependency in enumerate(component.depends):
            if not dependency.startswith("cutlass_"):
                continue
            other = first.setdefault(component.backend, dependency)
            if other != dependency:
                yield kernel.source.problem(
                    "B109",
                    f"'{dependency}' beside '{other}': components of '{component.backend}' are built as one project",
                    path=("kernel", name, "depends", index),
                    severity="warning",
                    help=f"use one version of CUTLASS in every component of '{component.backend}'",
                )


def files(kernel: Kernel) -> Iterator[Problem]:
    """Yield files that a build would miss or that are listed twice, and include directories that do not exist."""
    try:
        source_set(kernel)
    except ConfigError as error:
        yield from error.problems
    seen: set[tuple[KeyPath, str]] = set()
    for path, entry in listed(kernel.config):
        here = (path[:-1], posixpath.normpath(entry))
        if here in seen:
            yield kernel.source.problem(
                "B104",
                f"file {quoted(entry)} is listed twice",
                path=path,
                severity="warning",
                help="remove one of the two",
            )
        seen.add(here)
    tree = Tree.of(kernel.root)
    for path, entry in included(kernel.config):
        elsewhere = foreign_path(entry, kernel.config.sources) is not None or writes_below(
            entry, kernel.config.generate
        )
        if not elsewhere and not tree.is_directory(entry):
            yield kernel.source.problem(
                "B105",
                f"include directory {quoted(entry)} does not exist",
                path=path,
                severity="warning",
                help="it is relative to the directory of 'build.toml'",
            )


def listed(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Yield each entry of a `src` list, with its place."""
    return _entries(config, "src")


def included(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Yield each entry of an `include` list, with its place."""
    return _entries(config, "include")


def _entries(config: Config, key: str) -> Iterator[tuple[KeyPath, str]]:
    for table, part in config.tables():
        entries: tuple[str, ...] = getattr(part, key)
        yield from (((*table, key, index), entry) for index, entry in enumerate(entries))


def foreign_sources(kernel: Kernel) -> Iterator[Problem]:
    """Yield the foreign sources that no entry of `src` or `include` names."""
    sources = kernel.config.sources
    entries = (entry for _, entry in (*listed(kernel.config), *included(kernel.config)))
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


def licenses(kernel: Kernel) -> Iterator[Problem]:
    """Yield a license that is not an SPDX expression."""
    licenses: list[tuple[KeyPath, str]] = [(("general", "license"), kernel.config.general.license)]
    for name, source in kernel.config.sources.items():
        licenses += [] if source.license is None else [(("sources", name, "license"), source.license)]
    for path, text in licenses:
        problem = license_problem(text)
        if problem is not None:
            message, remedy = problem
            yield kernel.source.problem("B114", message, path=path, severity="warning", help=remedy)


def rendering(kernel: Kernel) -> Iterator[Problem]:
    """Yield the values and files that a render would refuse, for every backend."""
    tree = Tree.of(kernel.root)
    for backend in dict.fromkeys(kernel.config.general.backends):
        yield from _refused(kernel, tree, backend)


def _refused(kernel: Kernel, tree: Tree, backend: Backend) -> tuple[Problem, ...]:
    try:
        refusals.check(kernel, tree, backend, allow_unsafe_flags=False)
    except ConfigError as error:
        return error.problems
    return ()
