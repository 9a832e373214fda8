"""`builder test`."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import click

from builder import kernel as kernels
from builder import terminal
from builder.cli import selecting, view
from builder.cli.arguments import kernel_argument, load_test_option, store_option
from builder.cli.selecting import variants_option
from builder.config import LoadTestRule
from builder.engine import budget, dry_run, kernel_tests, local
from builder.engine.options import Options
from builder.matrix import SETS
from builder.matrix.selection import Scope
from builder.store import Store
from builder.toolchain import installed

_REST = "pytest"


class _ArgumentsForPytest(click.Command):
    """A command that leaves what stands behind `--` to pytest."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[_REST] = args[end + 1 :]
        return super().parse_args(ctx, args[:end])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- PYTEST_ARGUMENTS]"]


@click.command(cls=_ArgumentsForPytest)
@kernel_argument
@variants_option("Cell to test")
@click.option("--python", type=click.Path(path_type=Path), help="Python whose torch and pytest are used.")
@load_test_option
@store_option
@click.option("-q", "--quiet", is_flag=True, help="No progress of the build.")
@click.pass_context
def command(
    ctx: click.Context,
    kernel: Path,
    variants: tuple[str, ...],
    python: Path | None,
    load_test: LoadTestRule | None,
    store: Path,
    quiet: bool,
) -> int:
    """Build the cell for the torch that is installed, and run the kernel's tests against its wheel.

    The tests run in a folder of their own, where the wheel is what they import and never the sources.
    """
    loaded = kernels.load(kernel)
    cells = selecting.cells(loaded, Scope(sets=SETS, unbundled=True), variants=variants)
    tests = kernel_tests.tests_of(loaded.root)
    found = installed.look(python)
    kernel_tests.require(cells, found)
    options = Options(
        store=Store(store),
        output=Path(),
        limits=budget.machine(),
        environ=dict(os.environ),
        isolation=False,
        python=found.python,
        load_test=load_test,
    )
    if not variants:
        order = kernel_tests.backends(cells[0].framework, found)
        cells = (kernel_tests.choose(dry_run.preview(loaded, cells, options), order).cell,)
    shown = view.choose(environ=os.environ, quiet=quiet)
    with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
        shown.start()
        try:
            outcomes = local.build_cells(loaded, cells, replace(options, output=Path(dist)), shown.show)
        finally:
            shown.stop()
        failures = [outcome.error for outcome in outcomes if outcome.error is not None]
        if failures:
            raise failures[0]
        wheels = [outcome.wheel for outcome in outcomes if outcome.wheel is not None]
        return max(_run(loaded, wheel, tests, found.python, ctx.meta[_REST]) for wheel in wheels)


def _run(kernel: kernels.Kernel, wheel: Path, tests: Path, python: Path, arguments: list[str]) -> int:
    terminal.err(f"testing {wheel.name}")
    return kernel_tests.run(
        wheel, root=kernel.root, tests=tests, python=python, arguments=arguments, environ=dict(os.environ)
    )
