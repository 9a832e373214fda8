"""The options that select cells, such as --variant, --backend, --set and --all, and the cells that they name."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from builder import terminal
from builder.cli import completing
from builder.cli.arguments import ALL, BackendType, Name
from builder.config import Backend
from builder.config.values import InvalidValueError, Version
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.matrix import SETS, Cell, coverage, is_noarch, quick, require_backends, rows
from builder.matrix.quick import TargetGpus
from builder.matrix.selection import Scope, by_variant, to_build
from builder.matrix.variant import SYSTEMS


class NoGpuCodeError(BuilderError):
    """What is to be built has no code for the GPUs that are named."""


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class TorchType(click.ParamType[Version]):
    """A torch of the matrix, by MAJOR.MINOR."""

    name = "torch"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the version, if a row of the matrix has it."""
        if isinstance(value, Version):
            return value
        try:
            version = Version(value)
        except InvalidValueError as error:
            self.fail(str(error), param, ctx)
        known = sorted({row.torch for row in rows()})
        if version not in known:
            self.fail(f"no row of the matrix has torch {version}: it has {', '.join(map(str, known))}", param, ctx)
        return version

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002  click's signature
        """Return the words that stand for the value in a help text."""
        return "MAJOR.MINOR"


def variants_option(what: str) -> Decorator:
    """Return the option that names cells by their variants."""
    return click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="V",
        shell_complete=completing.variants,
        help=f"{what}, also as KERNEL:V; may be repeated.",
    )


backends_option = click.option(
    "--backend",
    "backends",
    multiple=True,
    type=BackendType(),
    shell_complete=completing.backends,
    help="Only cells of this backend; may be repeated.",
)


def systems_option(what: str) -> Decorator:
    """Return the option that names systems of cells."""
    return click.option("--system", "systems", type=Name("system", SYSTEMS), multiple=True, help=what)


def _sets(_ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    return SETS if ALL in value else value or Scope().sets


sets_option = click.option(
    "--set",
    "sets",
    type=Name("set", (*SETS, ALL)),
    multiple=True,
    callback=_sets,
    help=f"Rows to look at; may be repeated. Default: {SETS[0]}.",
)
torches_option = click.option(
    "--torch",
    "torches",
    type=TorchType(),
    multiple=True,
    help="Only cells built with this torch; may be repeated.",
)
unbundled_option = click.option("--all", "unbundled", is_flag=True, help="Also cells that are not part of a release.")


def for_gpus(
    kernel: Kernel,
    scope: Scope,
    asked: TargetGpus | str | None,
    *,
    variants: Sequence[str] = (),
    environ: Mapping[str, str],
) -> tuple[tuple[Cell, ...], tuple[str, ...]]:
    """Return the cells that options name, and the GPUs that they are built for alone; none for a full build.

    Raises:
        BuilderError: what is to be built has no code for these GPUs.
        NotHereError: this machine has none, and its own were asked for.
        NothingToDoError: there is no cell; the reasons are given.
    """
    if asked is None or asked == ALL:
        return cells(kernel, scope, variants=variants), ()
    if variants:
        found = cells(kernel, scope, variants=variants)
        target = _target(kernel, asked, [cell.backend for cell in found], environ)
        for cell in found:
            quick.require(target.archs, cell.backend, noarch=cell.noarch)
    else:
        require_backends(kernel.config, scope.backends)
        target = _target(kernel, asked, scope.backends or kernel.config.general.backends, environ)
        found = cells(kernel, replace(scope, backends=(target.backend,)))
    return found, target.archs


def say_what_is_built(kernel: Kernel, found: Sequence[Cell], only: tuple[str, ...]) -> None:
    """Say of a quick build that it is one, and what its components lack."""
    if not only:
        return
    terminal.err(f"note: quick build only for {', '.join(only)}: its wheels are not for release")
    # A component that has nothing left is an error when it is built.
    covered = (each for cell in found for each in coverage.of(kernel.config, cell, only))
    for message in dict.fromkeys(each.message for each in covered if each.selection.compiled):
        if message is not None:
            terminal.err(f"warning: {message}")


def _target(
    kernel: Kernel, asked: TargetGpus | str, backends: Sequence[Backend], environ: Mapping[str, str]
) -> TargetGpus:
    able = [backend for backend in quick.BACKENDS if backend in backends and not is_noarch(kernel.config, backend)]
    titles = " and ".join(backend.facts.title for backend in able or dict.fromkeys(backends))
    if not able:
        raise NoGpuCodeError(
            f"nothing to build has code for GPUs whose architecture can be named: it is for {titles}",
            help="leave out --archs, which is for components of CUDA and ROCm",
        )
    if not isinstance(asked, TargetGpus):
        from builder.toolchain import this_machine  # noqa: PLC0415  few builds ask the machine

        return this_machine.native_gpus(able, environ)
    if asked.backend not in able:
        raise NoGpuCodeError(
            f"{asked} is of {asked.backend.facts.title}, and what is to be built has code for {titles}",
            help=f"name architectures of {titles}",
        )
    return asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedKernels:
    """Kernels with the scope of each, and why others have no part in what is asked for."""

    scopes: tuple[tuple[Kernel, Scope], ...]
    left_out: Mapping[str, str]
    """Reason by the name of the kernel."""


def among(kernels: Sequence[Kernel], scope: Scope) -> ScopedKernels:
    """Return the scope of each of several kernels: those of the backends that it has.

    Raises:
        BuilderError: the scope names a backend that none of them has.
    """
    scopes: list[tuple[Kernel, Scope]] = []
    left_out: dict[str, str] = {}
    for backend in scope.backends:
        if kernels and not any(backend in kernel.config.general.backends for kernel in kernels):
            raise BuilderError(
                f"none of {len(kernels)} kernels has the backend '{backend}'", help="name one that a kernel has"
            )
    for kernel in kernels:
        own = tuple(backend for backend in scope.backends if backend in kernel.config.general.backends)
        if scope.backends and not own:
            left_out[kernel.config.general.name] = f"no backend {' or '.join(map(str, scope.backends))}"
        else:
            scopes.append((kernel, replace(scope, backends=own)))
    return ScopedKernels(scopes=tuple(scopes), left_out=left_out)


def cells(kernel: Kernel, scope: Scope, *, variants: Sequence[str] = ()) -> tuple[Cell, ...]:
    """Return the cells that options name, of noarch wheels the one of this machine.

    Raises:
        BuilderError: the scope names a backend that the kernel does not have.
        NothingToDoError: there is no cell; the reasons are given.
    """
    from builder import toolchain  # noqa: PLC0415  start-up time: showing the matrix needs no tool

    own = [variant.removeprefix(f"{kernel.config.general.name}:") for variant in variants]
    return to_build(kernel, scope, variants=own, here=toolchain.system())


def known(kernel: Kernel, scope: Scope) -> Collection[str]:
    """Return the variants that a kernel has."""
    from builder import toolchain  # noqa: PLC0415

    return by_variant(kernel, replace(scope, backends=()), here=toolchain.system()).keys()
