"""`builder shell`: a shell with what a cell is built with, and the kernel itself."""

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
from builder.cli import building, selecting, testing, view
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
from builder.matrix import SETS, Cell, quick
from builder.matrix.quick import TargetGpus
from builder.matrix.selection import Scope
from builder.plan import dry_run, limits
from builder.plan.options import Options
from builder.store import Store
from builder.toolchain import this_machine


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
    scope = Scope(sets=SETS if no_isolation else Scope().sets, unbundled=True)
    cells, only = selecting.for_gpus(loaded, scope, archs, variants=variants, environ=os.environ)
    options = _options(store, isolation=not no_isolation, python=python, load_test=load_test, cache=cache)
    options = replace(options, wheel=replace(options.wheel, only=only))
    options = building.with_compilers(options, cells, pinned=building.takes_pinned(loaded, toolchain), quiet=quiet)
    if not variants:
        plans = dry_run.preview(loaded, cells, options)
        cells = (kernel_tests.choose(plans, tuple(_order(loaded, cells, os.environ))).cell,)
    selecting.say_what_is_built(loaded, cells, only)
    with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
        (cell,) = cells
        wheel = _built(loaded, cell, replace(options, output=Path(dist)), quiet=quiet)
        with kernel_shell.opened(loaded, cell, wheel, options, terminal.err) as opened:
            asked = testing.rest(ctx)
            if not asked and not quiet:
                _greet(loaded, cell, opened)
            return kernel_shell.run(asked, opened)


def _options(
    store: Path, *, isolation: bool, python: Path | None, load_test: LoadTestRule | None, cache: CacheOptions | None
) -> Options:
    return Options(
        store=Store(store),
        output=Path(),
        limits=limits.of_machine(),
        environ=dict(os.environ),
        isolation=isolation,
        python=python,
        load_test=load_test,
        cache=cache,
    )


def _order(kernel: Kernel, cells: Sequence[Cell], environ: Mapping[str, str]) -> Iterator[Backend]:
    """Yield the backends of a kernel: that of a GPU which is here, then the CPU's, then the others."""
    own = dict.fromkeys(cell.backend for cell in cells)
    able = [backend for backend in own if backend in quick.BACKENDS]
    here: list[Backend] = []
    if able and kernel.config.kernel:
        try:
            here = [this_machine.native_gpus(able, environ).backend]
        except BuilderError:
            here = []
    yield from dict.fromkeys((*here, *(backend for backend in own if backend is Backend.CPU), *own))


def _built(kernel: Kernel, cell: Cell, options: Options, *, quiet: bool) -> Path:
    """Build a cell, or take it from the store.

    Raises:
        BuilderError: it cannot be built.
    """
    with view.showing(environ=os.environ, quiet=quiet) as show:
        (outcome,) = local.build_cells(kernel, (cell,), options, show)
    if outcome.error is not None:
        raise outcome.error
    if outcome.wheel is None:
        raise AssertionError(outcome)
    return outcome.wheel


def _greet(kernel: Kernel, cell: Cell, shell: kernel_shell.KernelShell) -> None:
    has = " and ".join(filter(None, (shell.framework, str(kernel.config.general.name.module))))
    terminal.err(f"{cell.variant}: python has {has}; 'exit' leaves the shell")
