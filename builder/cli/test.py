"""`builder test`: run the tests of kernels against their wheels."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from builder import terminal
from builder.author import tests as kernel_tests
from builder.author.test_build import TestBuild, TestRequest
from builder.cli import building, testing, view
from builder.cli.selecting import NamedKernels, kernels_argument
from builder.engine import local
from builder.engine.outcome import CellOutcome
from builder.errors import BuilderError, NothingToDoError
from builder.plan.choosing import NoGpuCodeError
from builder.plan.kernels import Refusal, load
from builder.wording import columns, reasons_left_out


@click.command(cls=testing.PytestCommand)
@kernels_argument
@testing.options
@click.option("-q", "--quiet", is_flag=True, help="No progress of the build.")
@click.pass_context
def command(ctx: click.Context, /, named: NamedKernels, quiet: bool, **given: Any) -> int:
    """Build the cell for the torch that is installed, and run the tests of each kernel against its wheel.

    The tests run in a folder of their own, where the wheel is what they import and never the sources.
    """
    tests, left_out, refusals = _prepare(named, testing.request(ctx, **given))
    code = building.say_who_is_left_out(left_out, refusals)
    if not tests:
        return code
    if not named.several:
        tests[0].run()  # what its tests lack is told before the build
    results = [(refusal.folder.as_posix(), "refused") for refusal in refusals]
    for test in tests:
        building.say_if_quick(test.build)
    with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
        with view.showing(environ=os.environ, quiet=quiet) as listen:
            outcomes = local.build([test.into(Path(dist)) for test in tests], listen, several=named.several)
        left = iter(outcomes)
        for test in tests:
            ended, result = _tested(test, [next(left) for _ in test.build.cells], alone=not named.several)
            code = max(code, ended)
            results.append((test.build.name, result))
    if named.several:
        terminal.err("\n".join(columns([("kernel", "tests"), *results])))
    return code


def _prepare(named: NamedKernels, request: TestRequest) -> tuple[list[TestBuild], dict[str, str], list[Refusal]]:
    """Return what is tested of each kernel, why others have no tests, and what is wrong with the rest.

    Raises:
        BuilderError: the one kernel cannot be tested here.
        NothingToDoError: none has anything to test.
    """
    loaded = load(named.folders, several=named.several)
    tests: list[TestBuild] = []
    left_out: dict[str, str] = {}
    refusals = list(loaded.refusals)
    for kernel in loaded.kernels:
        name = kernel.config.general.name
        try:
            tests.append(request.prepare(kernel))
        except BuilderError as error:
            if not named.several:
                raise
            match error:
                case kernel_tests.NoTestsError():
                    left_out[name] = "no tests"
                case NothingToDoError() | kernel_tests.NoFittingCellError() | NoGpuCodeError():
                    left_out[name] = error.message.splitlines()[0].replace(f" of '{name}'", "")
                case _:
                    refusals.append(Refusal(folder=kernel.root, error=error))
    if not tests and not refusals:
        reasons = [f"  {reason}" for reason in reasons_left_out(left_out)]
        raise NothingToDoError("\n".join(("no kernel has anything to test here", *reasons)))
    return tests, left_out, refusals


def _tested(test: TestBuild, outcomes: Sequence[CellOutcome], *, alone: bool) -> tuple[int, str]:
    """Run the tests of one kernel, and return the exit code and what came of it in a word.

    Raises:
        BuilderError: the kernel is tested `alone`, and is not built or its tests cannot be run.
    """
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if errors and alone:
        raise errors[0]
    for error in errors:
        terminal.err(f"error: {error}")
    if errors:
        return max(error.exit_code for error in errors), "not built"
    code = 0
    try:
        for outcome in outcomes:
            if outcome.wheel is not None:
                asked = test.run()
                terminal.err(f"testing {outcome.wheel.name}")
                code = max(code, kernel_tests.run(outcome.wheel, asked))
    except BuilderError as error:
        if alone:
            raise
        terminal.err(f"error: {error}")
        return error.exit_code, "not run"
    return code, "FAILED" if code else "passed"
