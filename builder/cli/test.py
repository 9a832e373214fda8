"""`builder test`: run the tests of kernels against their wheels."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from builder import kernel as kernels
from builder import terminal
from builder.author import tests as kernel_tests
from builder.cli import selecting, several, testing, view
from builder.cli.several import LoadedKernels, NamedKernels, Refusal, kernels_argument
from builder.engine import local
from builder.engine.outcome import CellOutcome
from builder.errors import BuilderError, NothingToDoError
from builder.plan.options import KernelBuild
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
    request = testing.TestRequest.of(ctx, os.environ, **given)
    if named.several:
        return _test_several(several.load(named), request, quiet=quiet)
    loaded = kernels.load(named.folders[0])
    build = request.prepare(loaded)
    asked = build.run
    selecting.say_what_is_built(loaded, build.cells, build.options.wheel.only)
    with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
        options = replace(build.options, output=Path(dist))
        with view.showing(environ=os.environ, quiet=quiet) as show:
            outcomes = local.build_cells(loaded, build.cells, options, show)
        failures = [outcome.error for outcome in outcomes if outcome.error is not None]
        if failures:
            raise failures[0]
        wheels = [outcome.wheel for outcome in outcomes if outcome.wheel is not None]
        return max(_run(wheel, asked) for wheel in wheels)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """What is tested of several kernels."""

    builds: tuple[testing.TestBuild, ...]
    left_out: Mapping[str, str]
    """Why a kernel is not tested, by its name."""
    refusals: tuple[Refusal, ...]


def _test_several(loaded: LoadedKernels, request: testing.TestRequest, *, quiet: bool) -> int:
    """Build the cells of several kernels under one budget, run the tests of each, and return the worst exit code."""
    found = _prepare(loaded, request)
    if not found.builds and not found.refusals:
        reasons = [f"  {reason}" for reason in reasons_left_out(found.left_out)]
        raise NothingToDoError("\n".join(("no kernel has anything to test here", *reasons)))
    for reason in reasons_left_out(found.left_out):
        terminal.err(f"note: {reason}")
    code = several.say(found.refusals)
    if not found.builds:
        return code
    results = [(refusal.folder.as_posix(), "refused") for refusal in found.refusals]
    for build in found.builds:
        selecting.say_what_is_built(build.kernel, build.cells, build.options.wheel.only)
    with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
        with view.showing(environ=os.environ, quiet=quiet) as show:
            outcomes = local.build_several([_build_of(build, Path(dist)) for build in found.builds], show)
        for build in found.builds:
            name = str(build.kernel.config.general.name)
            ended, result = _tested(build, [outcome for outcome in outcomes if outcome.kernel == name])
            code = max(code, ended)
            results.append((name, result))
    terminal.err("\n".join(columns([("kernel", "tests"), *results])))
    return code


def _prepare(loaded: LoadedKernels, request: testing.TestRequest) -> _Prepared:
    builds: list[testing.TestBuild] = []
    left_out: dict[str, str] = {}
    refusals = list(loaded.refusals)
    for kernel in loaded.kernels:
        name = kernel.config.general.name
        try:
            builds.append(request.prepare(kernel))
        except kernel_tests.NoTestsError:
            left_out[name] = "no tests"
        except (NothingToDoError, kernel_tests.NoFittingCellError, selecting.NoGpuCodeError) as error:
            left_out[name] = error.message.splitlines()[0].replace(f" of '{name}'", "")
        except BuilderError as error:
            refusals.append(Refusal(folder=kernel.root, error=error))
    return _Prepared(builds=tuple(builds), left_out=left_out, refusals=tuple(refusals))


def _build_of(build: testing.TestBuild, output: Path) -> KernelBuild:
    return KernelBuild(kernel=build.kernel, cells=build.cells, options=replace(build.options, output=output))


def _tested(build: testing.TestBuild, outcomes: Sequence[CellOutcome]) -> tuple[int, str]:
    """Run the tests of one kernel, and return the exit code and what came of it in a word."""
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    for error in errors:
        terminal.err(f"error: {error}")
    if errors:
        return max(error.exit_code for error in errors), "not built"
    try:
        code = max(_run(outcome.wheel, build.run) for outcome in outcomes if outcome.wheel is not None)
    except BuilderError as error:
        terminal.err(f"error: {error}")
        return error.exit_code, "not run"
    return code, "FAILED" if code else "passed"


def _run(wheel: Path, asked: kernel_tests.TestRun) -> int:
    terminal.err(f"testing {wheel.name}")
    return kernel_tests.run(wheel, asked)
