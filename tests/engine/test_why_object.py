"""Why an object was compiled again, from what the store remembers of two builds."""

import pytest

from builder import codec
from builder.engine import why_object
from builder.make.objects import ObjectInputs


def made(**files):
    inputs = ObjectInputs(source="one.cpp", command="c", compilers="k", framework="", system="s", files=files)
    return {"inputs": codec.encode(inputs), "file": {"output": "one.o", "start": 1.0, "end": 3.5}}


@pytest.mark.parametrize(
    ("now", "before", "text"),
    [
        (made(a_h="1"), None, "compiled in 2.5 s: the first build that is known"),
        (made(a_h="1"), made(a_h="2"), "compiled in 2.5 s; changed: a_h"),
        (made(a_h="1"), made(a_h="1"), "compiled in 2.5 s; changed: nothing, but no cache had it"),
    ],
)
def test_the_last_build_is_explained(now, before, text):
    (found,) = why_object.compared({"one.o": now}, {} if before is None else {"one.o": before}, "a_h", {"a_h": "1"})
    assert (found.text, found.pending) == (text, ())


@pytest.mark.parametrize("cache", ["store", "redis://h"])
def test_an_object_of_a_cache_says_where_it_is_from(cache):
    now = made(a_h="1") | {"file": {"cache": cache, "writer": "ci-7", "saved": 9.1, "output": "one.o"}}
    (found,) = why_object.compared({"one.o": now}, {"one.o": made(a_h="1")}, "a_h", {"a_h": "1"})
    where = "the store" if cache == "store" else cache
    assert (found.text, found.pending) == (f"taken from {where}, compiled by ci-7 in 9.1 s", ())


def test_what_changed_since_is_pending_and_other_files_have_no_object():
    now = {"one.o": made(a_h="1", b_h="2")}
    (found,) = why_object.compared(now, {}, "a_h", {"a_h": "9"})
    assert found.pending == ("a_h", "b_h")
    assert list(why_object.compared(now, {}, "c_h", {})) == []
