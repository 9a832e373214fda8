"""The slowest files of a build, compared with the last build of their cell."""

import pytest

from builder.engine import why_object
from builder.make.build_report import BuildReport, Built
from builder.make.objects import ObjectInputs
from builder.report import timeline
from builder.report.page import slowest_files
from tests.report.recorded import CPU, CUDA, built, done, file, line, page

CACHED = {"cache": "redis://h", "writer": "ci-<7>", "saved": 8.0}

WAS_CACHED = file("a.o", 0, 1, **CACHED)


def slowest(now, last):
    found = timeline.of([line(9, CPU, "[1/1] a"), done(99, CPU)], [built(CPU, *now)])
    return slowest_files(found.cells, lambda _: {each["output"]: each for each in last})


@pytest.mark.parametrize(
    ("now", "last", "before", "change"),
    [
        pytest.param(file("a.o", 0, 6), file("a.o", 5, 9), "4.0 s", "2.0 s slower (+50 %)", id="slower"),
        pytest.param(file("a.o", 0, 3), file("a.o", 0, 4), "4.0 s", "1.0 s faster (-25 %)", id="faster"),
        pytest.param(file("a.o", 0, 4.3), file("a.o", 0, 4), "4.0 s", "about the same", id="within a tenth"),
        pytest.param(file("a.o", 0, 0.2), file("a.o", 0, 0.1), "0.1 s", "about the same", id="too short to tell"),
        pytest.param(file("a.o", 0, 2), file("a.o", 0, 0), "0.0 s", "2.0 s slower", id="took no time"),
        pytest.param(file("a.o", 0, 4), file("b.o", 0, 9), "", "", id="another file"),
        pytest.param(file("a.o", 0, 6), WAS_CACHED, "8.0 s, by ci-<7>", "2.0 s faster (-25 %)", id="was cached"),
        pytest.param(file("a.o", 0, 1, **CACHED), file("a.o", 0, 4), "4.0 s", "from a cache", id="is cached"),
    ],
)  # fmt: skip
def test_a_file_is_compared_with_the_last_build(now, last, before, change):
    (found,) = slowest([now], [last])
    assert (found["before"], found["change"]) == (before, change)


def test_the_slowest_come_first_and_there_are_twenty_at_most():
    found = slowest([file(f"{number}.o", 0, number + 1) for number in range(30)], [])
    assert [each["label"] for each in found] == [f"{number}.o" for number in range(29, 9, -1)]


def remembered(store, *files):
    """Note a build of these files, as the engine does."""
    inputs = ObjectInputs(source="a", command="c", compilers="k", framework="", system="s")
    made = Built(
        name="w", content=b"", report=BuildReport(files=files), objects={each["output"]: inputs for each in files}
    )
    why_object.remember(store, "relu", CPU, made)


def test_the_build_before_is_what_the_store_remembered_before_this_one(store):
    first, second = file("a.cpp.o", 0, 4.125), file("a.cpp.o", 0, 6.5)
    assert why_object.earlier(store, "relu", CPU, [second]) == {}
    remembered(store, first)
    assert why_object.earlier(store, "relu", CPU, [first]) == {}
    remembered(store, second)
    assert why_object.earlier(store, "relu", CPU, [second]) == {"a.cpp.o": first}
    assert why_object.earlier(store, "relu", CUDA, [second]) == {}


def test_of_a_build_that_could_not_be_remembered_the_newest_is_the_one_before(store):
    first, second, other = file("a.cpp.o", 0, 4), file("a.cpp.o", 0, 6), file("b.cpp.o", 0, 1)
    remembered(store, first, other)
    assert why_object.earlier(store, "relu", CPU, [second, other]) == {"a.cpp.o": first, "b.cpp.o": other}


@pytest.mark.parametrize("note", [{"now": 1}, {"now": {"a": 1}}, {"now": {"a": {"file": {"output": "a"}}}}, {}])
def test_a_note_that_says_something_else_counts_as_none(store, note):
    store.set_note(f"objects-relu-{CPU}", note)
    assert why_object.earlier(store, "relu", CPU, [file("a.o", 0, 1)]) == {}


def test_the_page_has_both_times_and_says_where_nothing_is_known(monkeypatch):
    events, outcomes = [line(9, CPU, "[1/1] a"), done(9, CPU)], [built(CPU, file("a.o", 0, 6))]
    known = page(monkeypatch, events, outcomes, earlier=lambda _: {"a.o": file("a.o", 0, 1, **CACHED)})
    assert '<td data-column="Last build">8.0 s, by ci-&lt;7&gt;</td>' in known
    assert '<td data-column="Change">2.0 s faster (-25 %)</td>' in known
    assert "knows no earlier build" not in known
    assert "The store knows no earlier build of these cells" in page(monkeypatch, events, outcomes)
