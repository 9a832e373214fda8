"""Edition 6 is a preview: read with a warning, written only where it is asked for."""

import json

import pytest

from builder import kernel, lint, toml
from builder.cli import run
from builder.config import Backend, parse, read, shape, v5, v6
from builder.config.update import rewrite
from builder.render import render
from builder.wheel.core_metadata import metadata_file
from tests.config.texts import GENERAL, problems_of, source
from tests.render import small
from tests.wheel.cells import cells

URLS = ("https://github.com/example/one", "https://github.com/example/two")
FIVE = f'{GENERAL}upstream = "{URLS[0]}" # where it is from\n[torch]\nlibraries = ["dl"]\n'
SIX = FIVE.replace("edition = 5", "edition = 6").replace(f'"{URLS[0]}"', f'["{URLS[0]}"]')


@pytest.mark.parametrize("table", ["Config", "General"])
def test_it_has_the_keys_of_edition_5(table):
    five, six = ([each.key for each in shape.fields(getattr(edition, table))] for edition in (v5, v6))
    assert six == five


def test_one_repository_means_what_it_means_in_edition_5():
    assert read(source(SIX)).schema == 6
    assert parse(source(SIX)) == parse(source(FIVE))
    none = SIX.replace(f'["{URLS[0]}"]', "[]")
    assert parse(source(none)).general.upstream is None


@pytest.mark.parametrize(
    ("value", "code", "key"),
    [
        pytest.param(f'"{URLS[0]}"', "B012", ("general", "upstream"), id="a text"),
        pytest.param(f'["{URLS[0]}", "ext::sh"]', "B022", ("general", "upstream", 1), id="no address"),
        pytest.param("[1]", "B012", ("general", "upstream", 0), id="a number"),
    ],
)
def test_what_is_no_list_of_repositories_is_refused_at_its_place(value, code, key):
    (problem,) = problems_of(SIX.replace(f'["{URLS[0]}"]', value))
    assert (problem.code, problem.key) == (code, key)
    assert problem.span is not None


def test_keys_of_ours_are_read_and_unknown_ones_are_not():
    (problem,) = problems_of(SIX.replace("libraries", "libaries"))
    assert (problem.code, problem.help) == ("B010", "did you mean 'libraries'?")


def test_every_repository_is_in_the_metadata_and_the_first_is_what_clients_are_told(tmp_path):
    small.kernel(tmp_path, general=f'upstream = "{URLS[0]}"')
    config = tmp_path / "build.toml"
    text = config.read_text().replace("edition = 5", "edition = 6")
    config.write_text(text.replace(f'"{URLS[0]}"', json.dumps(URLS)))
    made = kernel.load(tmp_path)
    project = render(made, Backend.CPU)
    urls = toml.loads(project.files["pyproject.toml"].decode())["project"]["urls"]
    assert urls == {"Upstream": URLS[0], "Upstream-2": URLS[1]}
    assert json.loads(project.files["torch-ext/tiny/metadata.json"])["upstream"] == URLS[0]
    _, found = cells(framework='[torch]\nsrc = ["b.cpp"]')
    cell = found["torch213-cxx11-cpu-x86_64-linux"]
    said = metadata_file(made.config, cell, version="1", framework_version="2.13.0")
    assert f"Project-URL: Upstream-2, {URLS[1]}\n" in said


def test_check_warns_of_it(tmp_path):
    small.kernel(tmp_path)
    config = tmp_path / "build.toml"
    config.write_text(config.read_text().replace("edition = 5", "edition = 6"))
    report = lint.inspect(tmp_path)
    assert [(each.problem.code, each.problem.severity) for each in report.found if each.problem.code == "B134"] == [
        ("B134", "warning")
    ]
    assert report.edition == 6


def test_update_writes_it_only_where_it_is_asked_for():
    assert rewrite(source(FIVE)) == FIVE
    assert rewrite(source(FIVE), preview=True) == SIX
    assert rewrite(source(SIX)) == SIX
    assert rewrite(source(SIX), preview=True) == SIX
    old = GENERAL.replace("edition = 5\n", "") + "[torch]\n"
    assert "edition = 6\n" in rewrite(source(old), preview=True)


def test_the_command_says_which_edition_a_file_is_in(tmp_path, capsys):
    file = tmp_path / "build.toml"
    file.write_text(FIVE)
    assert run(["update", str(tmp_path), "--edition", "6"]) == 0
    assert run(["update", str(tmp_path)]) == 0
    assert capsys.readouterr().err == f"{file} is now in edition 6\n{file} is in edition 6 already\n"
    assert file.read_text() == SIX
