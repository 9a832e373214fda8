"""`builder shell`: a shell with the tools and the framework of a cell, and the built kernel."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from builder import kernel as kernels
from builder import terminal
from builder.author import kernel_shell
from builder.author import tests as kernel_tests
from builder.cli import building, testing, view
from builder.cli.arguments import (
    archs_option,
    kernel_argument,
    load_test_option,
    python_option,
    store_option,
    toolchain_option,
)
from builder.cli.asking import ask_of, cache_options
from builder.cli.selecting import variants_option
from builder.config import Backend
from builder.engine import local
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.matrix import SETS, Cell, architectures
from builder.matrix.selection import Scope
from builder.plan import choosing, dry_run
from builder.toolchain import this_machine


class _Shell(testing.PytestCommand):
    """A command that passes on the arguments after `--`."""

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
def command(ctx: click.Context, /, kernel: Path, quiet: bool, **given: Any) -> int:
    """Open a shell, or run a command, with the compilers of a cell, its framework and the built kernel.

    The kernel is built first, unless the store has it. Python imports the wheel and not the sources: after a change,
    open the shell again, or use `builder watch`.
    """
    if len(given["variants"]) > 1:
        raise BuilderError("a shell is of one cell", help="name one with --variant")
    loaded = kernels.load(kernel)
    ask = ask_of(sets=SETS if given["no_isolation"] else Scope().sets, unbundled=True, **given)
    (build,) = choosing.with_compilers((choosing.build_of(loaded, ask),), (lambda _: None) if quiet else terminal.err)
    if not ask.variants:
        order = tuple(_order(loaded, build.cells, ask.environ))
        build = replace(build, cells=(kernel_tests.choose(dry_run.preview(build), order).cell,))
    building.say_if_quick(build)
    (cell,) = build.cells
    with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
        into_dist = replace(build, ask=replace(build.ask, output=Path(dist)))
        with view.showing(environ=os.environ, quiet=quiet) as listen:
            (outcome,) = local.build((into_dist,), listen)
        if outcome.error is not None:
            raise outcome.error
        if outcome.wheel is None:
            raise AssertionError(outcome)
        with kernel_shell.opened(loaded, cell, outcome.wheel, build.ask, terminal.err) as opened:
            asked = testing.rest(ctx)
            if not asked and not quiet:
                has = " and ".join(filter(None, (opened.framework, str(loaded.config.general.name.module))))
                terminal.err(f"{cell.variant}: python has {has}; 'exit' leaves the shell")
            return kernel_shell.run(asked, opened)


def _order(kernel: Kernel, cells: Sequence[Cell], environ: Mapping[str, str]) -> Iterator[Backend]:
    """Yield the backends of a kernel: the one of this machine's GPU, then the CPU's, then the others."""
    own = dict.fromkeys(cell.backend for cell in cells)
    able = [backend for backend in own if backend in architectures.BACKENDS]
    here: list[Backend] = []
    if able and kernel.config.kernel:
        try:
            here = [this_machine.native_gpus(able, environ).backend]
        except BuilderError:
            here = []
    yield from dict.fromkeys((*here, *(backend for backend in own if backend is Backend.CPU), *own))
