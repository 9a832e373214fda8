"""JSON of dataclasses: it comes back as it was, and what is none is refused."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import codec
from builder.config.values import Backend, KernelName, Version


class Colour(Enum):
    """A colour."""

    RED = "red"


class _Optional(TypedDict, total=False):
    cache: str


class Made(_Optional):
    """A file."""

    output: str


@dataclass(frozen=True)
class Inner:
    """A part."""

    size_in_bytes: int
    where: Path


@dataclass(frozen=True)
class Other:
    """Another part."""

    name: KernelName


@dataclass(frozen=True, kw_only=True)
class Whole:
    """All kinds of fields."""

    text: str = ""
    share: float = 0.5
    on: bool = False
    colour: Colour = Colour.RED
    action: Literal["hit", "build"] = "hit"
    version: Version | None = None
    backend: Backend = Backend.CPU
    parts: tuple[Inner | Other, ...] = ()
    pair: tuple[int, str] = (1, "a")
    by_name: Mapping[str, Path] = field(default_factory=dict)
    files: tuple[Made, ...] | None = None
    anything: Any = None
    rare: str | None = field(default=None, metadata=codec.spelled(sparse=True))
    renamed: str = field(default="x", metadata=codec.spelled(key="other-name"))
    doubled: int = field(
        default=1, metadata=codec.spelled(write=lambda value: value * 2, read=lambda value: value // 2)
    )


PARTS = st.builds(Inner, st.integers(), st.just(Path("/a b"))) | st.builds(Other, st.just(KernelName("relu")))
MADE = st.fixed_dictionaries({"output": st.text()}, optional={"cache": st.text()})


@given(
    st.builds(
        Whole,
        text=st.text(),
        share=st.integers() | st.floats(allow_nan=False),
        on=st.booleans(),
        action=st.sampled_from(("hit", "build")),
        version=st.none() | st.just(Version("2.10")),
        backend=st.sampled_from(Backend),
        parts=st.lists(PARTS, max_size=3).map(tuple),
        pair=st.tuples(st.integers(), st.text()),
        by_name=st.dictionaries(st.text(), st.just(Path("p"))),
        files=st.none() | st.lists(MADE, max_size=2).map(tuple),
        anything=st.none() | st.lists(st.integers()),
        rare=st.none() | st.text(),
        renamed=st.text(),
        doubled=st.integers(),
    )
)
def test_a_value_comes_back_from_json(value):
    assert codec.decode(Whole, json.loads(json.dumps(codec.encode(value)))) == value


def test_keys_have_dashes_and_what_is_sparse_is_left_out():
    found = codec.encode(Whole(parts=(Inner(3, Path("/x")),), version=Version("2.10")))
    assert found["parts"] == [{"size-in-bytes": 3, "where": "/x"}]
    assert (found["version"], found["colour"], found["other-name"], found["doubled"]) == ("2.10", "red", "x", 2)
    assert "rare" not in found


def test_what_is_not_there_has_its_default_and_what_is_not_known_is_left_alone():
    assert codec.decode(Whole, {"of a later version": 1}) == Whole()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        pytest.param({"text": 1}, "value.text is 1, not str", id="no text"),
        pytest.param({"on": 1}, "value.on is 1, not bool", id="a number is no truth"),
        pytest.param({"action": "x"}, "value.action is 'x', not one of", id="no literal"),
        pytest.param({"colour": "blue"}, "'blue' is not a valid Colour", id="no member"),
        pytest.param({"version": "x"}, "'x' is not a version", id="no version"),
        pytest.param({"parts": {}}, "value.parts is {}, not a list", id="no list"),
        pytest.param({"parts": [{"where": "p"}]}, "value.parts[0] has no 'size-in-bytes'", id="a field is missing"),
        pytest.param({"by-name": []}, "value.by-name is [], not a dict", id="no table"),
        pytest.param({"pair": [1]}, "argument 2", id="a pair of one"),
        pytest.param([], "value is [], not a dict", id="no record"),
    ],
)
def test_json_of_something_else_is_refused(table, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        codec.decode(Whole, table)


def test_a_value_without_json_is_a_mistake():
    with pytest.raises(TypeError, match="a value of object has no JSON"):
        codec.encode(object())
