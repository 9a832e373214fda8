"""The trace of a build, in the trace-event format that Perfetto and chrome://tracing read."""

import itertools
import json

import jsonschema
import pytest

from builder.engine.outcome import CellOutcome
from builder.report import timeline, trace
from tests.report.recorded import CELLS, CPU, CUDA, HIT, built, done, file, line, step

PLACE = {"pid": {"type": "integer", "minimum": 1}, "tid": {"type": "integer", "minimum": 1}}
TIME = {"type": "integer", "minimum": 0}
TEXTS = {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}


COUNTS = {"type": "object", "minProperties": 1, "additionalProperties": {"type": "number"}}
ENTRIES = (
    ("X", ["tid", "ts", "dur"], {"ts": TIME, "dur": TIME, "cat": {"type": "string"}, "args": TEXTS}),
    ("M", ["args"], {"args": {**TEXTS, "required": ["name"]}}),
    ("C", ["ts", "args"], {"ts": TIME, "args": COUNTS}),
)
SCHEMA = {
    "type": "object",
    "required": ["traceEvents"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "traceEvents": {
            "type": "array",
            "items": {
                "type": "object",
                "oneOf": [
                    {
                        "properties": {
                            "ph": {"const": ph},
                            "name": {"type": "string", "minLength": 1},
                            **PLACE,
                            **properties,
                        },
                        "required": ["ph", "name", "pid", *required],
                        "additionalProperties": False,
                    }
                    for ph, required, properties in ENTRIES
                ],
            },
        },
    },
    "additionalProperties": False,
}
"""The part of the format that a trace of a build has: complete events, metadata and counters; times in microseconds."""
CACHED = {"cache": "redis://<c>", "writer": "ci-7", "saved": 9.0}
EVENTS = (
    step(0, CPU, "preparing"),
    step(0, HIT, "preparing"),
    done(0.2, HIT),
    line(1, CPU, "*** Configuring CMake..."),
    line(4, CPU, "[1/4] b.o"),
    line(7, CPU, "auditing"),
    done(10, CPU),
)
FILES = (
    file("CMakeFiles/_k.dir/csrc/a.cpp.o", 0, 4),
    file("b.o", 0.5, 2.5),
    file("c.o", 2.5, 3.0, **CACHED),
    file("lib.so", 4, 4.5),
)
MEMORY = ((0.0, 0), (1.25, 3 << 30))


def entries(events=EVENTS, outcomes=None, memory=MEMORY):
    """Return the entries of a trace that keeps to the format."""
    hit = CellOutcome(cell=CELLS[HIT], status="hit")
    skipped = CellOutcome(cell=CELLS[CUDA], status="skipped")
    found = timeline.of(events, outcomes or [built(CPU, *FILES), hit, skipped], memory)
    document = json.loads(trace.of(found))
    jsonschema.validate(document, SCHEMA)
    return document["traceEvents"]


def rows(**given):
    """Return the slices of a trace by the name of their row."""
    found = entries(**given)
    names = {each["tid"]: each["args"]["name"] for each in found if each["name"] == "thread_name"}
    slices = [each for each in found if each["ph"] == "X"]
    return {name: [each for each in slices if each["tid"] == row] for row, name in names.items()}


def test_each_cell_and_each_compiler_has_a_row_and_the_critical_path_one():
    found = {name: [each["name"] for each in slices] for name, slices in rows().items()}
    assert found == {
        f"{CPU}: built": ["preparing", "configuring", "compiling", "auditing"],
        f"{HIT}: from the store": ["preparing"],
        "compiler 1": ["csrc/a.cpp", "lib.so"],
        "compiler 2": ["b.o", "c.o"],
        "critical path": ["preparing", "configuring", "csrc/a.cpp", "lib.so", "auditing"],
    }


def test_times_are_microseconds_and_a_slice_says_what_its_bar_does():
    found = rows()
    (a, _), (_, c) = found["compiler 1"], found["compiler 2"]
    assert (a["ts"], a["dur"], a["cat"]) == (1_500_000, 4_000_000, "file")
    assert a["args"] == {"cell": CPU, "origin": "compiled here", "on the critical path": "yes"}
    assert c["args"] == {"cell": CPU, "origin": "not compiled: from redis://<c>, compiled by ci-7 in 9.0 s"}
    assert found[f"{CPU}: built"][0]["args"] == {"cell": CPU, "on the critical path": "yes"}


def test_groups_are_named_and_no_row_is_in_two_of_them():
    found = entries()
    names = {each["pid"]: each["args"]["name"] for each in found if each["name"] == "process_name"}
    assert list(names.values()) == ["memory of all processes", "cells", "compilers", "critical path"]
    threads = [(each["pid"], each["tid"]) for each in found if each["name"] == "thread_name"]
    assert len({row for _, row in threads}) == len(threads)
    assert {(each["pid"], each["tid"]) for each in found if each["ph"] == "X"} == set(threads)


def test_the_memory_is_a_counter():
    counters = [(each["ts"], each["args"]) for each in entries() if each["ph"] == "C"]
    assert counters == [(0, {"MiB": 0.0}), (1_250_000, {"MiB": 3072.0})]
    assert [each for each in entries(memory=None) if each["ph"] == "C"] == []


@pytest.mark.parametrize("begun", [4.0, 3.93], ids=["just then", "a little before"])
def test_slices_of_a_row_never_overlap_so_that_they_do_not_nest(begun):
    files = (file("a.o", 0, 4), file("lib.so", begun, 4.5))
    for slices in rows(outcomes=[built(CPU, *files)]).values():
        for before, after in itertools.pairwise(slices):
            assert before["ts"] + before["dur"] <= after["ts"]


def test_a_build_that_told_nothing_has_a_trace():
    assert rows(events=[], outcomes=[CellOutcome(cell=CELLS[CPU], status="hit")], memory=None) == {"critical path": []}


def test_names_are_text_that_controls_nothing():
    found = rows(outcomes=[built(CPU, file("a\x1b[31m.o", 0, 4))])
    assert [each["name"] for each in found["compiler 1"]] == ["a\\u001b[31m.o"]
