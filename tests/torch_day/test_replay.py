"""Torch day, replayed: from the wheels of a torch come the lines that the repository has for it."""

import json
import os
from dataclasses import replace

import pytest

from builder import pins, toml, torch_day
from builder.environment import indexes
from builder.torch_day import read, rows, tables
from builder.torch_day.rows import RowOptions
from builder.torch_day.torch_release import from_json
from builder.torch_day.wheel import RemoteError
from tests.paths import TESTS

VERSIONS = ("2.11.0", "2.12.0", "2.13.0", "2.14.1", "2.15.0")
MINORS = tuple(version.rpartition(".")[0] for version in VERSIONS)
WHOLE = MINORS[1:3]
"""Versions of which all builds were recorded; of the others, those of the default index."""
SETS = {"2.11": "legacy", "2.12": "legacy"}


@pytest.fixture(scope="module")
def releases():
    """What was read of each release; builds that are not on the default index are those of public lock files."""
    folder = TESTS / "data/torch-day"
    return {version: from_json((folder / f"{version}.json").read_text(encoding="utf-8")) for version in VERSIONS}


@pytest.fixture(scope="module")
def before(texts):
    """The data files as they were before the first of the versions."""
    rows_before = [
        line
        for line in texts[rows.NAME].splitlines(keepends=True)
        if 'torch = "2.' not in line and not line.startswith('"2.')
    ]
    old = pins.load()
    kept = tuple(part for part in old.parts if part.version not in MINORS)
    shim = json.loads(texts[tables.SHIM])
    oldest = {library: {name: at for name, at in of.items() if at == "<=2.10"} for library, of in shim.items()}
    head, _, rest = texts[tables.STANDARDS].partition('[[standard]]\ntorch = "2.12"\ncxx = 20\n\n')
    return {
        **texts,
        rows.NAME: "".join(rows_before),
        tables.PINS: pins.to_toml(tables.merged(replace(old, parts=kept, recipes={}), (), {})),
        tables.SHIM: json.dumps(oldest, indent=0),
        tables.STANDARDS: head + rest,
    }


@pytest.fixture(scope="module")
def replayed(tmp_path_factory, before, releases):
    """Propose each version after the other, from before the first."""
    now = dict(before)
    folder = tmp_path_factory.mktemp("data")
    for version, release in releases.items():
        file = folder / "pins.toml"
        file.write_text(now[tables.PINS], encoding="utf-8")
        into = SETS.get(version[:4], "release")
        proposal = torch_day.changes(release, now, pins.load(file), RowOptions(into=into))
        now |= {edit.name: edit.text for edit in proposal.edits}
    (folder / "pins.toml").write_text(now[tables.PINS], encoding="utf-8")
    return now, pins.load(folder / "pins.toml")


def rows_of(text, version):
    """Return the rows that have a library, without what a person decides: bundle, and which torch tests tvm-ffi."""
    table = toml.loads(text)
    cells = [row for name in ("release", "preview", "legacy") for row in table.get(name, {}).get("cell", ())]
    decided = {"tvm-ffi", "tvm-ffi-variant", "bundle"}
    mine = (row for row in cells if row["torch"] == version and "variant" in row)
    return [{key: value for key, value in row.items() if key not in decided} for row in mine]


@pytest.mark.parametrize("version", WHOLE)
def test_the_rows_of_a_version_come_from_its_wheels_in_their_order(replayed, texts, version):
    now, _ = replayed
    assert rows_of(now[rows.NAME], version) == rows_of(texts[rows.NAME], version)
    assert len(rows_of(now[rows.NAME], version)) == 13


@pytest.mark.parametrize("version", MINORS)
def test_the_rows_of_a_version_are_those_of_its_wheels(replayed, texts, version):
    now, _ = replayed
    mine = rows_of(texts[rows.NAME], version)
    found = rows_of(now[rows.NAME], version)
    assert all(row in found or not row.get("tested", True) for row in mine)
    assert version == MINORS[0] or all(row in mine for row in found)


def test_the_pythons_of_each_version_come_from_the_names_of_its_wheels(replayed, texts):
    now, _ = replayed
    known = toml.loads(texts[rows.NAME])["pythons"]
    found = toml.loads(now[rows.NAME])["pythons"]
    assert found == {version: known[version] for version in MINORS}


def test_every_pin_of_torch_and_triton_comes_from_what_is_published(replayed):
    _, now = replayed
    known = pins.load()
    for part in known.parts:
        if (
            part.name in ("torch", "triton")
            and part.version in MINORS[1:]
            and part.tested
            and any(part.wheels.values())
        ):
            assert part in now.parts
    parts = [part for part in known.parts if part.name == "torch" and part.version in MINORS and part.tested]
    files = {file for part in parts for table in part.wheels.values() for own in table.values() for file in own}
    assert len(files) > 70
    assert all(now.wheels[file] == known.wheels[file] for file in files)


def test_the_source_of_each_new_pin_is_its_own_requirement(releases):
    known = pins.load()
    kept = tuple(part for part in known.parts if part.version != "2.15")
    before = tables.merged(replace(known, parts=kept), (), {})
    said = tables.pins(releases["2.15.0"], pins.to_toml(before), before).diff("").splitlines()
    sources = {line.split(": ", 1)[1] for line in said if line.startswith("# ")}
    assert sources == {'files on the default index for "torch==2.15.0"', "the hash that the default index states"}


def test_the_c_functions_of_each_version_come_from_its_libraries(replayed, texts):
    now, _ = replayed
    known = json.loads(texts[tables.SHIM])
    assert json.loads(now[tables.SHIM]) == known
    assert now[tables.SHIM] == texts[tables.SHIM]


def test_the_cpp_standard_comes_from_the_wheels(replayed, texts):
    now, _ = replayed
    assert now[tables.STANDARDS] == texts[tables.STANDARDS]


def test_the_headers_that_include_python_s_come_from_the_wheels(releases, texts):
    """Those of 2.13 on: the list began with them."""
    now = texts[tables.PYTHON_HEADERS]
    text = now.partition("torch = [\n")[0].replace("by torch 2.15's", "by torch 2.12's") + "torch = [\n]\n"
    for version in VERSIONS[2:]:
        text = tables.python_headers(releases[version], text).text
    assert text == now


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_that_is_there_changes_no_row_or_table(releases, texts, version):
    options = RowOptions(into=SETS.get(version[:4], "release"))
    changed = {edit.name for edit in torch_day.changes(releases[version], texts, pins.load(), options).edits}
    assert changed <= ({rows.NAME, tables.PINS} if version == VERSIONS[0] else set())


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS[2::2])
def test_the_published_wheels_say_what_was_recorded(releases, texts, version):
    source = read.Indexes(
        pins=replace(pins.load(), parts=tuple(part for part in pins.load().parts if part.index is None)),
        env=indexes.read(os.environ).env,
        libraries=tuple(json.loads(texts[tables.SHIM])),
        progress=lambda _: None,
    )
    try:
        found = read.read(version, source)
    except RemoteError as error:
        if "does not give parts" not in error.message:
            raise
        pytest.skip(f"the index lacks answers to requests for parts of files: {error.message}")
    known = releases[version]
    same = ("version", "pythons", "file", "standard", "python_headers", "shim")
    assert [getattr(found, name) for name in same] == [getattr(known, name) for name in same]
    assert set(found.builds) <= set(known.builds)
    assert {"cpu", "metal"} < {build.compute for build in found.builds}
    torch = {file: wheel for file, wheel in found.wheels.items() if wheel.name == "torch"}
    assert torch
    assert all(known.wheels[file] == wheel for file, wheel in torch.items())
