"""Read the steps of a cell's build from its events, and put its outcome into words."""

import re
from collections import Counter
from collections.abc import Iterable

from builder.compile_cache import LOCAL
from builder.engine.outcome import CellOutcome, Event

_PROGRESS = re.compile(r"\[(\d+)/(\d+)\] (.*)")
"""Ninja's line about a finished file: https://ninja-build.org/manual.html#_environment_variables."""
_OBJECT = re.compile(r"CMakeFiles/[^/]+\.dir/(.+)\.o(bj)?")
"""CMake's path for the object of a source."""
_STEPS = {
    "*** Configuring CMake...": "configuring",
    "finishing the wheel": "finishing",
    "auditing": "auditing",
    "loading": "loading",
}
"""Lines of a build that start a step."""
COMPILING = "compiling"
"""The step in which ninja runs."""
WAITING = "waiting"
"""The step in which a cell waits for memory and cores."""
KNOWN = frozenset({"preparing", WAITING, "installing", "starting", COMPILING, *_STEPS.values()})
"""The steps with their own colours."""
DONE = "done"


def step_of(event: Event) -> str:
    """Return the step that an event starts; empty if it starts none."""
    match event.kind:
        case "done":
            return DONE
        case "step":
            word = event.text.partition(" ")[0]
            return "starting" if word == COMPILING else word  # CMake runs first
        case "line" if progress(event) is not None:
            return COMPILING
        case "line":
            return _STEPS.get(event.text, "")
        case _:
            return ""


def progress(event: Event) -> tuple[int, int, str] | None:
    """Return the number of finished files, the number of all files, and ninja's text about the last one."""
    match = _PROGRESS.match(event.text) if event.kind == "line" else None
    return None if match is None else (int(match[1]), int(match[2]), match[3])


def source_of(output: str) -> str:
    """Return the source of an object; the name of another output is returned unchanged."""
    return _OBJECT.sub(r"\1", output)


def cache_name(cache: str) -> str:
    """Return the name of a cache for readers."""
    return "the store" if cache == LOCAL else cache


def status_of(outcome: CellOutcome) -> str:
    """Return the status of a cell for readers."""
    return "from the store" if outcome.status == "hit" else outcome.status


def compiled(outcomes: Iterable[CellOutcome]) -> tuple[str, ...]:
    """Return sentences about compiled objects and the savings of caches; empty if no cache had any object."""
    reports = [each.report for each in outcomes if each.report is not None and each.status in {"built", "compiled"}]
    objects = sum(len(report.objects) for report in reports)
    cached = [file for report in reports for file in report.cached]
    if not cached:
        return ()
    saved = sum(file["saved"] for file in cached)
    counts = Counter(file["cache"] for file in cached)
    whose = ", ".join(f"{count} of {cache_name(name)}" for name, count in sorted(counts.items()))
    made = f"{objects - len(cached)} of {objects} files compiled"
    return (f"{made}; from caches: {whose}, which saved {saved:.1f} s of compiling",)


def warnings(outcomes: Iterable[CellOutcome]) -> tuple[str, ...]:
    """Return each warning of compilers in these builds once."""
    reports = (each.report for each in outcomes if each.report is not None and each.status in {"built", "compiled"})
    return tuple(dict.fromkeys(text for report in reports for text in report.warnings or ()))
