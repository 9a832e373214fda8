"""`builder test`: run the tests of kernels against their wheels."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from builder.author import tests as kernel_tests
from builder.author.test_build import TestBuild
from builder.cli import building, screen, testing, view
from builder.cli.selecting import kernels_argument
from builder.engine import local
from builder.engine.outcome import CellOutcome
from builder.errors import BuilderError, NothingToDoError
from builder.kernel import Kernel
from builder.plan.choosing import NoPartError
from builder.plan.kernels import NamedKernels, in_scope, of_each
from builder.report import steps
from builder.wording import columns


@click.command(cls=testing.PytestCommand)
@kernels_argument
@testing.options
@click.option("-q", "--quiet", is_flag=True, help="No progress of the build.")
@click.pass_context
def command(ctx: click.Context, /, named: NamedKernels, quiet: bool, **given: Any) -> int:
    """Build the cell for the torch that is installed, and run the tests of each kernel against its wheel.

    The tests run in a separate folder, where they import the wheel and never the sources.
    """
    request = testing.request(ctx, **given)
    found = of_each(
        in_scope(named, request.ask.scope),
        lambda kernel, _: request.prepare(kernel),
        why_left_out=_why_left_out,
        nothing="no kernel has anything to test here",
    )
    code = building.say_who_is_left_out(found)
    if not found.found:
        return code
    if not named.several:
        found.found[0].run()  # reports missing test requirements before the build
    results = [(refusal.folder.as_posix(), "refused") for refusal in found.refusals]
    for test in found.found:
        building.say_if_quick(test.build)
    cells = sum(len(test.build.cells) for test in found.found)
    with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
        with view.showing(environ=os.environ, quiet=quiet, cells=cells) as listen:
            outcomes = local.build([test.into(Path(dist)) for test in found.found], listen)
        for warning in steps.warnings(outcomes):
            screen.err(warning)
        left = iter(outcomes)
        for test in found.found:
            ended, result = _tested(test, [next(left) for _ in test.build.cells], alone=not named.several)
            code = max(code, ended)
            results.append((test.build.name, result))
    if named.several:
        screen.err("\n".join(columns([("kernel", "tests"), *results])))
    return code


def _why_left_out(kernel: Kernel, error: BuilderError) -> str | None:
    match error:
        case kernel_tests.NoTestsError():
            return "no tests"
        case NothingToDoError() | kernel_tests.NoFittingCellError() | NoPartError():
            return error.message.splitlines()[0].replace(f" of '{kernel.config.general.name}'", "")
        case _:
            return None


def _tested(test: TestBuild, outcomes: Sequence[CellOutcome], *, alone: bool) -> tuple[int, str]:
    """Run the tests of one kernel; return the exit code, and the outcome in a word.

    Raises:
        BuilderError: the kernel is tested `alone`, but is not built or its tests cannot run.
    """
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if errors and alone:
        raise errors[0]
    for error in errors:
        screen.err(f"error: {error}")
    if errors:
        return max(error.exit_code for error in errors), "not built"
    code = 0
    try:
        for outcome in outcomes:
            if outcome.wheel is not None:
                asked = test.run()
                screen.err(f"testing {outcome.wheel.name}")
                code = max(code, kernel_tests.run(outcome.wheel, asked))
    except BuilderError as error:
        if alone:
            raise
        screen.err(f"error: {error}")
        return error.exit_code, "not run"
    return code, "FAILED" if code else "passed"
