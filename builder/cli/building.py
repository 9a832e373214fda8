"""Run builds, show and record their events, and report the outcomes of kernels and cells."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from builder import terminal
from builder.cli import screen, selecting, view
from builder.engine.outcome import CellOutcome
from builder.errors import NothingToDoError
from builder.plan import choosing
from builder.plan.ask import KernelBuild
from builder.plan.kernels import Chosen
from builder.store.locks import StoppedError
from builder.wording import reasons_left_out


def say_who_is_left_out(chosen: Chosen[Any]) -> int:
    """Show the kernels that were left out and the problems of others; return the worst exit code."""
    for reason in reasons_left_out(chosen.left_out):
        screen.err(f"note: {reason}")
    return selecting.say(chosen.refusals)


def ready(builds: Sequence[KernelBuild], *, quiet: bool = False) -> tuple[KernelBuild, ...]:
    """Announce quick builds, and return all builds with their compilers.

    Raises:
        BuilderError: the pinned compilers are not available.
    """
    for build in builds:
        say_if_quick(build)
    return choosing.with_compilers(builds, (lambda _: None) if quiet else screen.err)


def say_if_quick(build: KernelBuild) -> None:
    """Announce a quick build, and what its components lack."""
    for line in choosing.about_quick(build):
        screen.err(line)


def run(builds: Sequence[KernelBuild], *, quiet: bool, report: Path | None = None) -> tuple[CellOutcome, ...]:
    """Build, show and record the events, and return the outcome of each cell; SIGTERM acts like Ctrl-C.

    Raises:
        KeyboardInterrupt: the build was stopped.
        ToolError: the wheels are built, but the report cannot be written.
    """
    signal.signal(signal.SIGTERM, interrupt)
    if builds[0].ask.engine == "nix":
        from builder.engine.nix import build  # noqa: PLC0415  only those who ask for Nix need it
    else:
        from builder.engine.local import build  # noqa: PLC0415  a dry run needs none of it

    if report is not None:
        from builder.cli.reporting import reported  # noqa: PLC0415  only those who ask for a report need it

        return reported(builds, build, report, quiet=quiet)
    with view.showing(environ=os.environ, quiet=quiet, cells=sum(len(each.cells) for each in builds)) as show:
        return build(builds, show)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Treat SIGTERM like Ctrl-C: end the compilers, and leave nothing half-written."""
    raise KeyboardInterrupt


def end(outcomes: Sequence[CellOutcome], *, as_json: bool) -> int:
    """Show the paths of the wheels, and return the exit code."""
    for outcome in () if as_json else outcomes:
        if outcome.wheel is not None:
            terminal.out(str(outcome.wheel))
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if failed:
        errors = [outcome.error for outcome in failed if outcome.error is not None]
        return max(error.exit_code for error in errors)
    if any(outcome.status == "stopped" for outcome in outcomes):
        screen.err("error: stopped by the time limit; the same command goes on from what is finished")
        return StoppedError.exit_code
    if all(outcome.status == "skipped" for outcome in outcomes):
        screen.err("error: this machine can build none of the cells; each reason is above")
        return NothingToDoError.exit_code
    return 0
