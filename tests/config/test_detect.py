"""Which schema a document is in, by the keys that it has."""

import pytest

from builder.config import detect_schema
from builder.config.text import Source
from builder.errors import ConfigError

SOURCE = Source(name="build.toml", text="")
PLAIN = {"depends": [], "src": []}


@pytest.mark.parametrize(
    ("table", "schema"),
    [
        pytest.param({"general": {"edition": 5}}, 5, id="an edition"),
        pytest.param({"general": {"edition": True}}, 5, id="an edition of another type"),
        pytest.param({}, 4, id="nothing"),
        pytest.param({"general": []}, 4, id="a general that is no table"),
        pytest.param({"general": {"version": 1}}, 4, id="a version"),
        pytest.param({"general": {"license": "MIT"}}, 4, id="a license"),
        pytest.param({"general": {}, "torch-noarch": {}}, 4, id="torch-noarch"),
        pytest.param({"general": {}, "torch": {"stable-abi": "2.10"}}, 4, id="a stable ABI"),
        pytest.param({"general": {"backends": []}}, 3, id="backends"),
        pytest.param({"general": {}, "kernel": {"a": {"backend": "cuda"}}}, 2, id="a backend of a component"),
        pytest.param({"general": {}, "kernel": {"a": {"language": "cuda"}, "b": {"backend": "cuda"}}}, 2, id="both"),
        pytest.param({"general": {}, "kernel": {"a": {"language": "cuda", "x": 1}}}, 1, id="a language"),
        pytest.param({"general": {}, "torch": {"universal": True}}, 1, id="universal of torch"),
        pytest.param({"general": {"name": "a"}, "kernel": {"a": PLAIN}}, 1, id="nothing that is newer"),
        pytest.param({"general": {"name": "a"}, "kernel": {"a": PLAIN, "b": 1}}, 1, id="a component that is none"),
        pytest.param({"general": {"name": "a", "x": 1}, "kernel": {"a": PLAIN}}, 2, id="a key of general that is new"),
        pytest.param({"general": {"name": "a"}, "kernel": {"a": {**PLAIN, "x": 1}}}, 2, id="a key that is new"),
        pytest.param({"general": {"name": "a"}}, 2, id="no component"),
    ],
)
def test_a_document_is_in_the_schema_that_its_keys_are_of(table, schema):
    assert detect_schema(table, SOURCE) == schema


@pytest.mark.parametrize(
    ("edition", "message", "remedy"),
    [
        (7, "edition 7 is newer than 5", "needs a newer builder"),
        (4, "there is no edition 4: 5 is the first", "write 'edition = 5'"),
        (-(10**17), f"there is no edition {-(10**17)}", "write 'edition = 5'"),
        (10**18, "edition a number of many digits is newer", "needs a newer builder"),
        (-(10**18), "there is no edition a number of many digits", "write 'edition = 5'"),
    ],
)
def test_an_edition_that_there_is_not_is_refused_with_what_to_do(edition, message, remedy):
    with pytest.raises(ConfigError) as raised:
        detect_schema({"general": {"edition": edition}}, SOURCE)
    (problem,) = raised.value.problems
    assert (problem.code, problem.key) == ("B004", ("general", "edition"))
    assert message in problem.message
    assert remedy in problem.help
