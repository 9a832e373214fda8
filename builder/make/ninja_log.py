"""Read ninja's log of the files that it made: https://ninja-build.org/manual.html#ref_log."""

from pathlib import Path
from typing import TypedDict

_FIELDS = 5
"""Start and end in milliseconds, mtime of the output, output, hash of the command."""


class ObjectOrigin(TypedDict, total=False):
    """The origin of an object that was not compiled here."""

    cache: str
    """The name of the cache that had the object."""
    writer: str
    """The machine that compiled it."""
    saved: float
    """Seconds that its compiler took there."""


class File(ObjectOrigin):
    """A file that was made; times are in seconds since ninja began."""

    output: str
    start: float
    end: float


def read(build: Path) -> tuple[File, ...]:
    """Return the files in the order in which ninja started them; empty if nothing was compiled."""
    made: dict[str, File] = {}
    for path in sorted(build.rglob(".ninja_log")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            fields = line.split("\t")
            if len(fields) == _FIELDS and fields[0].isdigit() and fields[1].isdigit():  # else the header line
                start, end = int(fields[0]) / 1000, int(fields[1]) / 1000
                made[fields[3]] = File(output=fields[3], start=start, end=end)  # made again: the last time counts
    # CMake lists the output of a custom step twice: relative to the build folder, and with its absolute path.
    whole = {name for name in made if any(name.endswith(f"/{other}") for other in made)}
    files = (file for name, file in made.items() if not (name.startswith("/") and name in whole))
    return tuple(sorted(files, key=lambda file: (file["start"], file["output"])))
