"""`builder watch`: build and test a kernel at each save."""

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from builder import kernel as kernels
from builder.author import tests as kernel_tests
from builder.author import watched
from builder.author.test_build import TestBuild, TestRequest
from builder.author.tests import NoTestsError
from builder.author.watched import Snapshot
from builder.cli import building, screen, testing, view
from builder.cli.arguments import kernel_argument
from builder.cli.group import file_error
from builder.engine import local
from builder.engine.outcome import CellOutcome, Event, Listen
from builder.errors import BuilderError
from builder.report import steps
from builder.wording import escaped


@click.command(cls=testing.PytestCommand)
@kernel_argument
@testing.options
@click.option("--tests/--no-tests", default=True, help="Run the kernel's tests after each build.")
@click.pass_context
def command(ctx: click.Context, /, kernel: Path, tests: bool, **given: Any) -> None:
    """Build and test a kernel at each save of one of its files, until Ctrl-C.

    Each round has a line with the saved files, the result and the time, and if it failed, the first error and the path
    of the log. A save during a round starts the next one.
    """
    request = testing.request(ctx, needs_tests=False, **given)
    if not (kernel / kernels.CONFIG).is_file():
        kernels.load(kernel)  # reports an invalid config, which saving a file here cannot repair
    signal.signal(signal.SIGTERM, building.interrupt)
    screen.err(f"watching {kernel}; Ctrl-C ends it")
    before = Snapshot.of(kernel)
    changed: tuple[str, ...] = ()
    while True:
        with _progress() as listen:
            found = play(kernel, request, listen, tests=tests)
        screen.out(found.line(changed, at=time.strftime("%H:%M:%S")))
        if found.details:
            screen.out(found.details)
        now = watched.wait(before)
        changed, before = now.changes(before), now


@contextlib.contextmanager
def _progress() -> Iterator[Listen]:
    """Show the steps of a build on a terminal while it runs, then clear them; elsewhere show nothing."""
    with view.showing(environ=os.environ, quiet=not view.is_live(os.environ)) as show:

        def listen(event: Event) -> None:
            if event.outcome is None:  # the line of the round has the result
                show(event)

        yield listen


_MOST_LINES = 30
"""The most lines of an error that are shown; the log has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The result of one round."""

    ok: bool
    result: str
    error: str = ""
    """The first error, as shown."""
    log: Path | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    """The warnings of compilers."""

    def line(self, changed: Sequence[str], *, at: str) -> str:
        """Return the line of the round: the time, the saved files, the result and the duration."""
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        what = f"{escaped(changed[0])}{more}" if changed else "start"
        word = "ok" if self.ok else "FAILED"
        return f"{at}  {word:<6}  {what}: {self.result}, {self.seconds:.1f} s"

    @property
    def details(self) -> str:
        """The warnings of compilers, or the first error and the path of the log."""
        lines = ("\n".join(self.warnings) if self.ok else self.error).splitlines()
        shown = lines[:_MOST_LINES]
        if len(lines) > _MOST_LINES:
            shown.append(f"… and {len(lines) - _MOST_LINES} more lines")
        if not self.ok and self.log is not None and str(self.log) not in self.error:
            shown.append(f"  log: {self.log}")
        return "\n".join(f"  {line}" for line in shown)


def play(root: Path, request: TestRequest, listen: Listen, *, tests: bool) -> Round:
    """Build a kernel and run its tests; an error that the author can correct makes a failed round."""
    began = time.monotonic()
    try:
        test = request.prepare(kernels.load(root))
        with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
            outcomes = local.build((test.into(Path(dist)),), listen)
            failed = [_failed(each.error, each.log) for each in outcomes if each.error is not None]
            found = failed[0] if failed else Round(ok=True, result=_built(outcomes), warnings=steps.warnings(outcomes))
            if tests and found.ok:
                found = _tested(test, outcomes, listen, found)
    except BuilderError as error:
        found = _failed(error)
    except OSError as error:
        if error.filename is None:
            raise
        found = _failed(file_error(error))
    return replace(found, seconds=time.monotonic() - began)


def _failed(error: BuilderError, log: Path | None = None) -> Round:
    return Round(ok=False, result="not built", error=error.shown, log=log)


def _built(outcomes: Sequence[CellOutcome]) -> str:
    """Return what was built, and from how many files."""
    reports = [each.report for each in outcomes if each.status == "built" and each.report is not None]
    if not any(each.status == "built" for each in outcomes):
        return "unchanged"
    objects = sum(len(report.objects) for report in reports)
    compiled = objects - sum(len(report.cached) for report in reports)
    warned = len(steps.warnings(outcomes))
    noted = f", {warned} warning{'s' * (warned > 1)}" if warned else ""
    return f"built ({compiled} of {objects} files compiled){noted}" if objects else "built"


def _tested(test: TestBuild, outcomes: Sequence[CellOutcome], listen: Listen, found: Round) -> Round:
    """Add the results of the tests to a round, up to the first cell with a failed test."""
    try:
        asked = test.run()
    except NoTestsError:
        return replace(found, result=f"{found.result}, no tests")
    built = found.result
    for outcome in outcomes:
        if outcome.wheel is None or not found.ok:
            continue
        listen(Event(variant=outcome.cell.variant, kind="step", text="testing"))
        log = None if outcome.log is None else outcome.log.with_name(f"{outcome.log.stem}-tests.log")
        if log is not None:
            log.unlink(missing_ok=True)
        try:
            report = kernel_tests.run_quietly(outcome.wheel, asked, log=log)
        except BuilderError as error:
            return replace(_failed(error, log), result=f"{built}, not tested")
        tested = f"{found.result}, {report}"
        found = replace(found, ok=report.failed == 0, result=tested, error=report.first or "", log=log)
    return found
