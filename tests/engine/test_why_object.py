"""Why an object was compiled again, from what the store remembers of two builds."""

import pytest

from builder import codec
from builder.engine import why_object
from builder.make.objects import ObjectInputs


def made(**files):
    inputs = ObjectInputs(source="one.cpp", command="c", compilers="k", framework="", system="s", files=files)
    return {"inputs": codec.encode(inputs), "file": {"output": "one.o", "start": 1.0, "end": 3.5}}


def cached(where, **files):
    return made(**files) | {"file": {"cache": where, "writer": "ci-7", "saved": 9.1, "output": "one.o"}}


@pytest.mark.parametrize(
    ("now", "before", "text"),
    [
        (made(a_h="1"), None, "compiled in 2.5 s: the first build that is known"),
        (made(a_h="1"), made(a_h="2"), "compiled in 2.5 s; changed: a_h"),
        (made(a_h="1"), made(a_h="1"), "compiled in 2.5 s; changed: nothing, but no cache had it"),
        (cached("store", a_h="1"), made(a_h="1"), "taken from the store, compiled by ci-7 in 9.1 s"),
        (cached("redis://h", a_h="1"), None, "taken from redis://h, compiled by ci-7 in 9.1 s"),
    ],
)
def test_the_last_build_is_explained(now, before, text):
    (found,) = why_object.compared({"one.o": now}, {} if before is None else {"one.o": before}, "a_h", {"a_h": "1"})
    assert (found.text, found.pending) == (text, ())


def test_what_changed_since_is_pending_and_other_files_have_no_object():
    now = {"one.o": made(a_h="1", b_h="2")}
    (found,) = why_object.compared(now, {}, "a_h", {"a_h": "9"})
    assert found.pending == ("a_h", "b_h")
    assert list(why_object.compared(now, {}, "c_h", {})) == []
