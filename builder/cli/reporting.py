"""Build with a report: a page, and a trace next to it."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from builder import terminal
from builder.cli import view
from builder.engine import why_object
from builder.engine.outcome import CellOutcome, Event, Listen
from builder.errors import ToolError
from builder.files import write_atomic
from builder.make.ninja_log import File
from builder.plan.ask import KernelBuild
from builder.report import page, timeline, trace
from builder.report.recorder import Recorder, look


def reported(
    builds: Sequence[KernelBuild],
    build: Callable[[Sequence[KernelBuild], Listen], tuple[CellOutcome, ...]],
    target: Path,
    *,
    quiet: bool,
) -> tuple[CellOutcome, ...]:
    """Build, show and record the events, and write the report, even if the build is stopped.

    Raises:
        KeyboardInterrupt: the build was stopped.
        ToolError: the wheels are built, but the report cannot be written.
    """
    ask = builds[0].ask
    is_local = ask.engine == "local"  # Nix's processes are not ours, and the store does not know what Nix built
    title = f"{len(builds)} kernels" if ask.kernels.several else builds[0].name
    recorder = Recorder(look() if is_local else None)

    def earlier(outcome: CellOutcome) -> Mapping[str, File]:
        if not is_local:
            return {}
        objects = () if outcome.report is None else outcome.report.objects
        return why_object.earlier(ask.store, outcome.kernel or title, outcome.cell.variant, objects)

    def write(outcomes: Sequence[CellOutcome], left: Sequence[str] | None = None) -> None:
        found = timeline.of(recorder.events, outcomes, recorder.memory)
        beside = target.with_suffix(".trace.json")
        html = page.of(found, kernel=title, trace=beside.name, earlier=earlier, left=left)
        try:
            write_atomic(beside, trace.of(found))
            write_atomic(target, html)
        except OSError as error:
            raise ToolError(
                f"cannot write the report '{target}': {error.strerror}", help="the wheels are built; name another file"
            ) from error

    try:
        cells = sum(len(each.cells) for each in builds)
        with recorder.measuring(), view.showing(environ=os.environ, quiet=quiet, cells=cells) as show:

            def listen(event: Event) -> None:
                recorder.show(event)
                show(event)

            outcomes = build(builds, listen)
    except KeyboardInterrupt:
        labels = [each.label(cell) for each in builds for cell in each.cells]
        ended = {event.variant: event.outcome for _, event in recorder.events if event.outcome is not None}
        try:
            write([ended[each] for each in labels if each in ended], [each for each in labels if each not in ended])
        except ToolError as error:
            terminal.err(f"error: {error.message}")
        raise
    write(outcomes)
    return outcomes
