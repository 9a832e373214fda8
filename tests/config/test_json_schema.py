"""The JSON Schema says what the parser says, as far as a schema can, and the reference page is up to date."""

import contextlib
import json
import re

import jsonschema
import pytest

from builder import toml
from builder.cli import run
from builder.config import read, reference
from builder.config.reference import json_schema
from tests.config.texts import differences, document, refusal_of, source
from tests.paths import ROOT, TESTS

DATA = TESTS / "data" / "config"
SCHEMA = json_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_a_valid_schema_of_draft_2020_12():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_command_prints_it(capsys):
    assert run(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*/build.toml")), ids=lambda path: path.parent.name)
def test_every_example_validates(path):
    VALIDATOR.validate(toml.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", sorted((DATA / "valid").glob("v5-*.toml")), ids=lambda path: path.stem)
def test_every_valid_config_of_edition_5_validates(path):
    VALIDATOR.validate(toml.loads(path.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def cases():
    """The documents that the parser accepts, and those that it refuses, by name."""
    found = {True: {}, False: {}}
    for edition, table, key, values in differences():
        for value, _ in values if edition == "edition-5" else ():
            text = document(edition, table, key, value)
            with contextlib.suppress(ValueError):  # what is no TOML has no document
                wrong = next(iter(VALIDATOR.iter_errors(toml.loads(text))), None)
                found[refusal_of(read, source(text)) is None][f"{table}.{key} = {value}"] = wrong
    return found


def test_what_the_parser_accepts_validates(cases):
    assert {name: found.message for name, found in cases[True].items() if found is not None} == {}
    assert len(cases[True]) > 200


def test_what_the_parser_refuses_does_not_validate_where_a_schema_can_say_so(cases):
    passed = {name for name, found in cases[False].items() if found is None}
    unexpected = {name for name in passed if not name.split(" = ")[0].endswith(INEXPRESSIBLE) and not JSON.match(name)}
    assert unexpected == set()
    assert len(passed) < sum(map(len, cases.values())) / 10


INEXPRESSIBLE = ("upstream", "source", "src", "include", "exclude", "when", "package", "requires", "data")
"""Keys whose rules no regular expression has: what a URL is, that a path stays inside the project, that a condition can
hold."""
JSON = re.compile(r".* = .*(?:\d\.0\b|e[01]\b|\d{19})|.*\\n\"", re.DOTALL)
"""In JSON, 1.0 is an integer, and integers have no largest; Python's `$` matches before a line end, too."""


def test_every_key_has_a_description():
    without = [
        f"{name}.{key}"
        for name, definition in [("", SCHEMA), *SCHEMA["$defs"].items()]
        for key, value in definition.get("properties", {}).items()
        if name != "Matrix" and "description" not in value
    ]
    assert without == []


def test_the_reference_page_is_up_to_date():
    assert (ROOT / "docs" / "config.md").read_text(encoding="utf-8") == reference.page()


def test_the_reference_page_names_every_key(capsys):
    assert run(["schema", "--format", "markdown"]) == 0
    page = capsys.readouterr().out
    keys = {key for definition in SCHEMA["$defs"].values() for key in definition.get("properties", {})}
    deprecated = {"cuda-capabilities", "rocm-archs"}
    backends = set(SCHEMA["$defs"]["Backend"]["enum"])
    tables = {"cuda", "neuron", "tpu", "xpu", "hub"}
    assert [key for key in sorted(keys - deprecated - backends - tables) if f"`{key}`" not in page] == []
    assert all(f"## `[general.{table}]`" in page for table in tables)
