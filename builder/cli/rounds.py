"""One round of `builder watch`: build, test, and say in a line what came of it."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builder import kernel as kernels
from builder import run
from builder.author import tests as kernel_tests
from builder.author.tests import NoTestsError, TestReport
from builder.cli.group import file_error
from builder.cli.testing import TestBuild, TestRequest
from builder.engine import local
from builder.engine.outcome import CellOutcome, Event, Listen
from builder.errors import BuilderError
from builder.wording import escaped

_MOST_LINES = 30
"""Lines of an error that are shown; the log has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What came of one round."""

    ok: bool
    result: str
    error: str = ""
    """The first error, as it is to be read."""
    log: Path | None = None
    seconds: float = 0.0

    def line(self, changed: Sequence[str], *, at: str) -> str:
        """Return the round in a line: when, what was saved, what came of it, how long it took."""
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        what = f"{escaped(changed[0])}{more}" if changed else "start"
        word = "ok" if self.ok else "FAILED"
        return f"{at}  {word:<6}  {what}: {self.result}, {self.seconds:.1f} s"

    @property
    def details(self) -> str:
        """The first error and where the rest is; empty where nothing failed."""
        if self.ok:
            return ""
        lines = self.error.splitlines()
        shown = lines[:_MOST_LINES]
        if len(lines) > _MOST_LINES:
            shown.append(f"… and {len(lines) - _MOST_LINES} more lines")
        if self.log is not None and str(self.log) not in self.error:
            shown.append(f"  log: {self.log}")
        return "\n".join(f"  {line}" for line in shown)


def play(root: Path, request: TestRequest, listen: Listen, *, tests: bool) -> Round:
    """Build a kernel and run its tests; whatever the author can mend is a round that failed."""
    began = time.monotonic()
    try:
        found = _play(root, request, listen, tests=tests)
    except BuilderError as error:
        found = _failed(error)
    except OSError as error:
        if error.filename is None:
            raise
        found = _failed(file_error(error))
    return replace(found, seconds=time.monotonic() - began)


def _failed(error: BuilderError, log: Path | None = None) -> Round:
    text = str(error)
    return Round(ok=False, result="not built", error=text if text.startswith("error") else f"error: {text}", log=log)


def _play(root: Path, request: TestRequest, listen: Listen, *, tests: bool) -> Round:
    kernel = kernels.load(root)
    test = request.prepare(kernel)
    with tempfile.TemporaryDirectory(prefix="builder-dist-") as dist:
        outcomes = local.build((test.into(Path(dist)),), listen)
        for outcome in outcomes:
            if outcome.error is not None:
                return _failed(outcome.error, outcome.log)
        built = _built(outcomes)
        if not tests:
            return Round(ok=True, result=built)
        return _tested(test, outcomes, listen, built=built)


def _built(outcomes: Sequence[CellOutcome]) -> str:
    """Say what was built, and of how many files."""
    reports = [each.report for each in outcomes if each.status == "built" and each.report is not None]
    if not any(each.status == "built" for each in outcomes):
        return "unchanged"
    objects = sum(len(report.objects) for report in reports)
    compiled = objects - sum(len(report.cached) for report in reports)
    return f"built ({compiled} of {objects} files compiled)" if objects else "built"


def _tested(test: TestBuild, outcomes: Sequence[CellOutcome], listen: Listen, *, built: str) -> Round:
    try:
        asked = test.run()
    except NoTestsError:
        return Round(ok=True, result=f"{built}, no tests")
    found = Round(ok=True, result=built)
    for outcome in outcomes:
        if outcome.wheel is None or not found.ok:
            continue
        listen(Event(variant=outcome.cell.variant, kind="step", text="testing"))
        log = None if outcome.log is None else outcome.log.with_name(f"{outcome.log.stem}-tests.log")
        try:
            report = _run(outcome.wheel, asked, log)
        except BuilderError as error:
            return replace(_failed(error, log), result=f"{built}, not tested")
        found = Round(ok=report.failed == 0, result=f"{found.result}, {report}", error=report.first or "", log=log)
    return found


def _run(wheel: Path, asked: kernel_tests.TestRun, log: Path | None) -> TestReport:
    if log is not None:
        log.unlink(missing_ok=True)
    processes = run.Processes()
    try:
        return kernel_tests.run_quietly(wheel, asked, log=log, processes=processes)
    except BaseException:
        processes.cancel()
        raise
