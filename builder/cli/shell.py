"""`builder shell`: a shell with the tools and the framework of a cell, and the built kernel."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from builder import kernel as kernels
from builder import terminal
from builder.author import shell as kernel_shell
from builder.author import tests as kernel_tests
from builder.cli import building, testing, view
from builder.cli.arguments import (
    archs_option,
    cache_options,
    kernel_argument,
    load_test_option,
    python_option,
    store_option,
    toolchain_option,
)
from builder.cli.selecting import variants_option
from builder.compile_cache import CacheOptions
from builder.config import Backend, LoadTestRule, ToolchainChoice
from builder.engine import local
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.matrix import SETS, Cell, architectures
from builder.matrix.architectures import TargetGpus
from builder.matrix.selection import Scope
from builder.plan import choosing, dry_run
from builder.plan.ask import Ask, KernelBuild
from builder.store import Store
from builder.toolchain import this_machine
from builder.wheel.options import BuildOptions


class _Shell(testing.PytestCommand):
    """A command that leaves what stands behind `--` to be run."""

    rest = "[-- COMMAND]"


@click.command(cls=_Shell)
@kernel_argument
@variants_option("Cell whose tools and framework the shell has")
@click.option("--no-isolation", is_flag=True, help="Use the torch of the current environment, or of --python.")
@python_option("Python to use; with --no-isolation, that with the torch.")
@archs_option("Build the kernel only for these GPUs.")
@load_test_option
@cache_options
@toolchain_option
@store_option
@click.option("-q", "--quiet", is_flag=True, help="No progress of the build.")
@click.pass_context
def command(
    ctx: click.Context,
    kernel: Path,
    variants: tuple[str, ...],
    no_isolation: bool,
    python: Path | None,
    archs: TargetGpus | str | None,
    load_test: LoadTestRule | None,
    cache: CacheOptions | None,
    toolchain: ToolchainChoice | None,
    store: Path,
    quiet: bool,
) -> int:
    """Open a shell, or run a command, with the compilers of a cell, its framework and the built kernel.

    The kernel is built first, if the store does not have it. Its sources are not what is imported: leave the shell and
    open it again after a change, or use `builder watch`.
    """
    if len(variants) > 1:
        raise BuilderError("a shell is of one cell", help="name one with --variant")
    loaded = kernels.load(kernel)
    ask = Ask(
        scope=Scope(sets=SETS if no_isolation else Scope().sets, unbundled=True),
        variants=variants,
        archs=archs,
        store=Store(store),
        environ=dict(os.environ),
        isolation=not no_isolation,
        python=python,
        options=BuildOptions(load_test=load_test),
        toolchain=toolchain,
        cache=cache,
    )
    (build,) = choosing.with_compilers((choosing.build_of(loaded, ask),), (lambda _: None) if quiet else terminal.err)
    if not variants:
        order = tuple(_order(loaded, build.cells, os.environ))
        build = replace(build, cells=(kernel_tests.choose(dry_run.preview(build), order).cell,))
    building.say_if_quick(build)
    with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
        (cell,) = build.cells
        wheel = _built(replace(build, ask=replace(build.ask, output=Path(dist))), quiet=quiet)
        with kernel_shell.opened(loaded, cell, wheel, build.ask, terminal.err) as opened:
            asked = testing.rest(ctx)
            if not asked and not quiet:
                _greet(loaded, cell, opened)
            return kernel_shell.run(asked, opened)


def _order(kernel: Kernel, cells: Sequence[Cell], environ: Mapping[str, str]) -> Iterator[Backend]:
    """Yield the backends of a kernel: that of a GPU which is here, then the CPU's, then the others."""
    own = dict.fromkeys(cell.backend for cell in cells)
    able = [backend for backend in own if backend in architectures.BACKENDS]
    here: list[Backend] = []
    if able and kernel.config.kernel:
        try:
            here = [this_machine.native_gpus(able, environ).backend]
        except BuilderError:
            here = []
    yield from dict.fromkeys((*here, *(backend for backend in own if backend is Backend.CPU), *own))


def _built(build: KernelBuild, *, quiet: bool) -> Path:
    """Build a cell, or take it from the store.

    Raises:
        BuilderError: it cannot be built.
    """
    with view.showing(environ=os.environ, quiet=quiet) as listen:
        (outcome,) = local.build((build,), listen)
    if outcome.error is not None:
        raise outcome.error
    if outcome.wheel is None:
        raise AssertionError(outcome)
    return outcome.wheel


def _greet(kernel: Kernel, cell: Cell, shell: kernel_shell.KernelShell) -> None:
    has = " and ".join(filter(None, (shell.framework, str(kernel.config.general.name.module))))
    terminal.err(f"{cell.variant}: python has {has}; 'exit' leaves the shell")
