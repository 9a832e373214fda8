"""Processes that tests start and look for: `builder` as a user runs it, and others."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.paths import ROOT


def run(*command, check=0, **options):
    """Run a command, and return it with its output as text; None as `check` takes any exit code."""
    done = subprocess.run(
        [str(part) for part in command], check=False, **{"text": True, "capture_output": True} | options
    )
    assert check is None or done.returncode == check, f"{command}\n{done.stdout}{done.stderr}"
    return done


def output(*command, **options):
    """Run a command that must not fail, and return its output."""
    return run(*command, **options).stdout


def tool(name):
    """Return a program of this environment, or else of PATH; None where there is none."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)


def command(*arguments):
    """Return the command line of `builder`."""
    return [sys.executable, "-m", "builder", *map(str, arguments)]


def variables(store=None, env=None):
    """Return the environment variables of `builder` in a folder that is not the checkout."""
    own = {"PYTHONPATH": str(ROOT)} | ({} if store is None else {"BUILDER_STORE": str(store)})
    return {**os.environ, **own, **{name: str(value) for name, value in (env or {}).items()}}


def builder(*arguments, store=None, env=None, check=None, prefix=(), **options):
    """Run `builder`, by a `prefix` if there is one; it may fail, but not crash."""
    done = run(*prefix, *command(*arguments), env=variables(store, env), check=None, **options)
    assert "\nTraceback" not in f"\n{done.stderr}", done.stderr  # that of a script is told with an indent
    assert check is None or done.returncode == check, done.stderr
    return done


def running():
    """Return the path in /proc and the command line, as a list of words, of every process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            found[path.parent] = path.read_text(errors="replace").split("\0")[:-1]
    return found


def until(holds, seconds=60):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
