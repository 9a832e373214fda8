"""Configs of every schema: read, dumped, upgraded, and refused with messages that are kept."""

import os

import pytest

from builder.config import parse, read, v5
from builder.config.text import Source
from builder.errors import ConfigError
from tests.config.dump import dump
from tests.config.texts import LICENSE, source
from tests.paths import TESTS

DATA = TESTS / "data/config"
GOLDEN = TESTS / "golden/config"
VALID = sorted((DATA / "valid").glob("*.toml"))
REFUSED = sorted((DATA / "refused").glob("*.toml"))


by_name = pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)


@by_name
def test_a_valid_config_is_read_in_the_schema_it_is_in(path):
    assert read(Source.read(path), license=LICENSE).schema == int(path.name[1])


@by_name
def test_what_is_dumped_parses_to_the_same_config(path):
    config = parse(Source.read(path), license=LICENSE)
    text = dump(config)
    assert parse(source(text)) == config
    assert dump(parse(source(text))) == text


@by_name
def test_a_config_of_an_old_schema_without_license_asks_for_one(path):
    if path.name[1] < "4":
        with pytest.raises(ConfigError, match="no license") as raised:
            parse(Source.read(path))
        assert [problem.code for problem in raised.value.problems] == ["B036"]
        assert "builder update --license" in raised.value.problems[0].help


@by_name
def test_an_upgrade_of_an_upgrade_changes_nothing(path):
    config = parse(Source.read(path), license=LICENSE)
    again = read(source(dump(config)))
    assert again.schema == v5.EDITION
    assert again.config == config


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_a_refused_config_is_reported_as_on_disk(path, request):
    with pytest.raises(ConfigError) as raised:
        parse(Source.read(path))
    golden = GOLDEN / f"{path.stem}.txt"
    if request.config.getoption("--update-golden", default=False) or os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(f"{raised.value}\n", encoding="utf-8")
    assert f"{raised.value}\n" == golden.read_text(encoding="utf-8")


def test_every_golden_message_has_its_config():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {path.stem for path in REFUSED}


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_a_problem_is_where_its_key_or_value_is(path):
    made = Source.read(path)
    with pytest.raises(ConfigError) as raised:
        parse(made)
    for problem in raised.value.problems:
        if problem.span is not None and made.has(problem.key):
            assert problem.span in (made.span(problem.key), made.span(problem.key, key=True))
