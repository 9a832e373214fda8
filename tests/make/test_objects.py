"""What objects were made of, as ninja tells it, and how two differ."""

from dataclasses import replace

import pytest

from builder import codec
from builder.make import objects
from builder.make.objects import ObjectInputs

ONE = ObjectInputs(
    source="csrc/one.cpp",
    command="c",
    compilers="k",
    framework="torch 2.13",
    system="s",
    files={"csrc/one.cpp": "1", "csrc/a.h": "2"},
)
DEPENDENCIES = """\
one.cpp.o: #deps 2, deps mtime 5 (VALID)
    /tmp/builder/src/csrc/one.cpp
    /tmp/builder/src/csrc/a.h

two words.cpp.o: #deps 1, deps mtime 5 (STALE)
    /tmp/builder/src/csrc/two words.cpp
three.cpp.o: deps not found
"""


def test_ninjas_list_is_read():
    assert list(objects.dependencies(DEPENDENCIES.splitlines())) == [
        ("one.cpp.o", ["/tmp/builder/src/csrc/one.cpp", "/tmp/builder/src/csrc/a.h"]),
        ("two words.cpp.o", ["/tmp/builder/src/csrc/two words.cpp"]),
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, ()),
        ({"files": {"csrc/one.cpp": "1", "csrc/a.h": "3"}}, ("csrc/a.h",)),
        ({"files": {"csrc/one.cpp": "1"}}, ("csrc/a.h",)),
        ({"files": {**ONE.files, "csrc/b.h": "3"}}, ("csrc/b.h",)),
        ({"command": "d"}, ("the command of the compiler",)),
        ({"compilers": "d"}, ("the compilers",)),
        ({"framework": "torch 2.14"}, ("the framework: torch 2.13 -> torch 2.14",)),
        ({"system": "t"}, ("headers of the system or of other packages",)),
    ],
)
def test_what_differs_is_named(change, words):
    assert replace(ONE, **change).changed_since(ONE) == words


def test_inputs_are_read_as_they_were_written():
    assert codec.decode(ObjectInputs, codec.encode(ONE)) == ONE
