"""A library that shows a build another clock, and folders in another order, made by the C compiler at hand."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from builder import resources
from builder.run import ask


@dataclass(frozen=True, slots=True, kw_only=True)
class Preload:
    """The library, or why there is none."""

    library: Path | None
    why: str = ""


def make(folder: Path) -> Preload:
    """Compile the library in `folder`."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux") or compiler is None:
        return Preload(library=None, why="it needs Linux and a C compiler")
    target = folder / "repro-preload.so"
    source = resources.DATA / "repro-preload.c"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(target), str(source), "-ldl", "-pthread"]
    done = ask(command)
    if done.returncode != 0:
        first = next(iter(done.stderr.splitlines()), "it fails")
        return Preload(library=None, why=f"{compiler} cannot compile what shows another clock: {first}")
    return Preload(library=target)
