"""`builder watch`: build and test a kernel at each save."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import click

from builder import kernel as kernels
from builder import terminal
from builder.author import watched
from builder.author.watched import Snapshot
from builder.cli import rounds, testing, view
from builder.cli.arguments import kernel_argument
from builder.engine.outcome import Event, Listen


@click.command(cls=testing.PytestCommand)
@kernel_argument
@testing.options
@click.option("--tests/--no-tests", default=True, help="Run the kernel's tests after each build.")
@click.pass_context
def command(ctx: click.Context, /, kernel: Path, tests: bool, **given: Any) -> None:
    """Build and test a kernel at each save of one of its files, until Ctrl-C.

    A line for each round says what was saved, what came of it and how long it took; below one that failed stands the
    first error, and where the log is. What is saved during a round is the next one.
    """
    request = testing.TestRequest.of(ctx, os.environ, needs_tests=False, **given)
    if not (kernel / kernels.CONFIG).is_file():
        kernels.load(kernel)  # which says what is wrong: nothing here can be saved and so mend it
    signal.signal(signal.SIGTERM, _interrupt)
    terminal.err(f"watching {kernel}; Ctrl-C ends it")
    before = Snapshot.of(kernel)
    changed: tuple[str, ...] = ()
    while True:
        with _progress() as listen:
            found = rounds.play(kernel, request, listen, tests=tests)
        terminal.out(found.line(changed, at=time.strftime("%H:%M:%S")))
        if found.details:
            terminal.out(found.details)
        now = watched.wait(before)
        changed, before = now.changes(before), now


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  signal's signature
    """Treat SIGTERM like Ctrl-C."""
    raise KeyboardInterrupt


@contextlib.contextmanager
def _progress() -> Iterator[Listen]:
    """Show the steps of a build while it runs: on a terminal, which is then as it was; elsewhere nothing."""
    with view.showing(environ=os.environ, quiet=not view.is_live(os.environ)) as show:

        def listen(event: Event) -> None:
            if event.outcome is None:  # the line of the round says the rest
                show(event)

        yield listen
