"""The trace of a build for Perfetto and chrome://tracing, in Chrome's trace-event format.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from builder import json_text
from builder.report.steps import status_of
from builder.report.timeline import Bar, Timeline, critical_path
from builder.wording import escaped

_MICROSECONDS = 1_000_000
_MIB = 1 << 20
_MEMORY = 1
"""The number of the memory's group; the format calls groups processes, and rows threads."""

Entry = dict[str, object]


def of(timeline: Timeline) -> bytes:
    """Return the trace: a row for each cell and each compiler, one for the critical path, and the memory."""
    path = critical_path(timeline)
    ran = [cell for cell in timeline.cells if cell.outcome.status != "skipped"]
    groups: dict[str, list[tuple[str, tuple[Bar, ...]]]] = {
        "cells": [(f"{cell.outcome.label}: {status_of(cell.outcome)}", cell.steps) for cell in ran if cell.steps],
        "compilers": [(f"compiler {number}", files) for number, files in enumerate(timeline.compilers, 1)],
        "critical path": [("critical path", path)],
    }
    on_path = frozenset(map(id, path))
    threads = itertools.count(1)
    entries = [_named("process", "memory of all processes", {"pid": _MEMORY})]
    entries += [
        {"ph": "C", "name": "memory", "pid": _MEMORY, "ts": _time(at), "args": {"MiB": round(size / _MIB, 1)}}
        for at, size in timeline.memory or ()
    ]
    for process, (name, rows) in enumerate(groups.items(), _MEMORY + 1):
        entries.append(_named("process", name, {"pid": process}))
        for row, bars in rows:
            place = {"pid": process, "tid": next(threads)}
            entries.append(_named("thread", escaped(row), place))
            entries += (entry | place for entry in _slices(bars, on_path))
    return json_text.compact({"displayTimeUnit": "ms", "traceEvents": entries}).encode()


def _named(what: str, name: str, place: Mapping[str, int]) -> Entry:
    return {"ph": "M", "name": f"{what}_name", "args": {"name": name}, **place}


def _slices(bars: Sequence[Bar], on_path: Collection[int]) -> Iterator[Entry]:
    """Yield an entry for each bar of a row without overlaps; `on_path` has the `id` of each critical bar."""
    free = 0
    for bar in bars:
        start, end = max(free, _time(bar.start)), _time(bar.end)
        free = max(start, end)
        said = {"cell": bar.cell, "origin": bar.origin, "on the critical path": "yes" if id(bar) in on_path else ""}
        yield {
            "ph": "X",
            "name": escaped(bar.label),
            "cat": "step" if bar.file is None else "file",
            "ts": start,
            "dur": free - start,
            "args": {key: escaped(text) for key, text in said.items() if text},
        }


def _time(seconds: float) -> int:
    return round(seconds * _MICROSECONDS)
