"""`builder test`: run a kernel's tests against its wheel."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from builder import kernel as kernels
from builder import terminal
from builder.cli import selecting, testing, view
from builder.engine import kernel_tests, local


@click.command(cls=testing.PytestCommand)
@testing.options
@click.option("-q", "--quiet", is_flag=True, help="No progress of the build.")
@click.pass_context
def command(ctx: click.Context, /, kernel: Path, quiet: bool, **given: Any) -> int:
    """Build the cell for the torch that is installed, and run the kernel's tests against its wheel.

    The tests run in a folder of their own, where the wheel is what they import and never the sources.
    """
    request = testing.TestRequest.of(ctx, os.environ, **given)
    loaded = kernels.load(kernel)
    build = request.prepare(loaded)
    asked = build.run
    selecting.say_what_is_built(loaded, build.cells, build.options.wheel.only)
    shown = view.choose(environ=os.environ, quiet=quiet)
    with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
        shown.start()
        try:
            options = replace(build.options, output=Path(dist))
            outcomes = local.build_cells(loaded, build.cells, options, shown.show)
        finally:
            shown.stop()
        failures = [outcome.error for outcome in outcomes if outcome.error is not None]
        if failures:
            raise failures[0]
        wheels = [outcome.wheel for outcome in outcomes if outcome.wheel is not None]
        return max(_run(wheel, asked) for wheel in wheels)


def _run(wheel: Path, asked: kernel_tests.TestRun) -> int:
    terminal.err(f"testing {wheel.name}")
    return kernel_tests.run(wheel, asked)
