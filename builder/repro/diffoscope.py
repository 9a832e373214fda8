"""What diffoscope says of two wheels, where it is installed."""

import shutil
from pathlib import Path

from builder.run import ask

_MOST = 20_000
"""Bytes of its report: a library that differs throughout has millions."""


def report(first: Path, second: Path) -> str:
    """Return its report as text, or why there is none; nothing where it is not installed."""
    program = shutil.which("diffoscope")
    if program is None:
        return ""
    command = [program, "--text", "-", "--max-report-size", str(_MOST), "--no-progress", str(first), str(second)]
    done = ask(command)
    if done.returncode not in (0, 1):  # 1: they differ
        last = next(reversed(done.stderr.strip().splitlines()), "it says nothing")
        return f"note: diffoscope fails: {last}\n"
    return done.stdout
