"""Backends and components that do not fit together."""

from collections.abc import Iterator

from builder.config import Backend, Framework
from builder.errors import Problem
from builder.kernel import Kernel
from builder.wording import quoted


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield components that nothing builds, and backends that cannot have components."""
    yield from _listed(kernel)
    yield from _components(kernel)
    yield from _noarch_only(kernel)
    yield from _cutlass(kernel)


def _listed(kernel: Kernel) -> Iterator[Problem]:
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
