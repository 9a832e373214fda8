"""The steps of a cell's build, as its events tell them, and how far ninja is."""

import re

from builder.engine.outcome import Event

_PROGRESS = re.compile(r"\[(\d+)/(\d+)\] (.*)")
"""How ninja begins the line of a file that is done: https://ninja-build.org/manual.html#_environment_variables."""
_OBJECT = re.compile(r"CMakeFiles/[^/]+\.dir/(.+)\.o(bj)?")
"""What CMake calls the object of a source."""
_STEPS = {
    "*** Configuring CMake...": "configuring",
    "finishing the wheel": "finishing",
    "auditing": "auditing",
    "loading": "loading",
}
"""Lines of a build that begin a step of it."""
COMPILING = "compiling"
"""The step in which ninja runs."""
WAITING = "waiting"
"""The step in which a cell waits for memory and cores."""
ORDER = (
    "preparing",
    WAITING,
    "installing",
    "starting",
    "configuring",
    COMPILING,
    "finishing",
    "auditing",
    "loading",
)
DONE = "done"


def step_of(event: Event) -> str:
    """Name the step that an event begins; empty when it begins none."""
    match event.kind:
        case "done":
            return DONE
        case "step":
            word = event.text.partition(" ")[0]
            return "starting" if word == COMPILING else word  # what compiles is not configured yet
        case "line" if is_progress(event):
            return COMPILING
        case "line":
            return _STEPS.get(event.text, "")
        case _:
            return ""


def is_progress(event: Event) -> bool:
    """Whether ninja tells of a file that is done."""
    return event.kind == "line" and _PROGRESS.match(event.text) is not None


def progress(event: Event) -> tuple[int, int, str] | None:
    """Return how many files are done, of how many, and what ninja says of the last one."""
    match = _PROGRESS.match(event.text) if event.kind == "line" else None
    return None if match is None else (int(match[1]), int(match[2]), match[3])


def source_of(output: str) -> str:
    """Return the source that an object was made of, as CMake names it; what is no object is named as it is."""
    return _OBJECT.sub(r"\1", output)
