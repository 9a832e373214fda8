"""Wheels of every kind with one member that a stranger changed: each command judges or refuses them in words."""

import json

import pytest

from builder import cli
from builder.audit import limited
from builder.errors import BuilderError
from builder.wheel.archive import Wheel
from tests.mutated_wheels import KINDS, MUTATIONS, members_of, mutate

COMMANDS = {
    "bundle": ("bundle", "{wheel}", "--output", "{out}"),
    "index": ("index", "--families", "--variants", "{folder}", "--output", "{out}"),
    "split": ("split", "{wheel}", "--output", "{out}"),
}


@pytest.fixture(params=KINDS)
def wheel(request, tmp_path):
    (tmp_path / "dist").mkdir()
    return KINDS[request.param](tmp_path / "dist")


def mutants(wheel):
    """Make each mutant in place of a wheel, and yield what it is, with whether its RECORD is that of the whole."""
    whole = wheel.read_bytes()
    for mutation in MUTATIONS:
        for name in members_of(wheel):
            for repaired in (False, True):
                mutate(wheel, mutation, name, repaired=repaired)
                if wheel.read_bytes() != whole:
                    yield f"{mutation} {name}", repaired
                wheel.write_bytes(whole)


def judged(wheel):
    """Return what the audit makes of a wheel: an exit code."""
    try:
        return 0 if limited.run(Wheel.read(wheel)).report.ok else 5
    except BuilderError:
        return 2


def test_the_whole_wheel_breaks_no_rule(wheel, tmp_path, capsys):
    assert cli.run(["audit", str(wheel)]) == 0, capsys.readouterr().out
    for command in COMMANDS.values():
        arguments = [part.format(wheel=wheel, folder=wheel.parent, out=tmp_path / command[0]) for part in command]
        refused = "sm-" in wheel.name and command[0] != "bundle"
        assert cli.run(arguments) == (2 if refused else 0)
        assert ("for one family of GPUs" in capsys.readouterr().err) is refused


def test_the_audit_finds_every_change_that_record_tells(wheel):
    found = {(what, repaired): judged(wheel) for what, repaired in mutants(wheel)}
    assert len(found) > 60
    assert {each: code for each, code in found.items() if code not in ((0, 2, 5) if each[1] else (2, 5))} == {}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_nothing_that_a_stranger_changed_is_published_unless_its_record_fits(wheel, tmp_path, capsys, command):
    wrong = {}
    for number, (what, repaired) in enumerate(mutants(wheel)):
        out = tmp_path / str(number)
        code = cli.run([part.format(wheel=wheel, folder=wheel.parent, out=out) for part in command])
        said = capsys.readouterr().err
        refused = code == 2 and said.startswith("error: ") and not out.exists()
        if not refused and not (repaired and code == 0):
            wrong[what, repaired] = code, said
    assert wrong == {}


@pytest.mark.parametrize("mutation", ["drop", "rename", "library"])
@pytest.mark.parametrize("file", ["METADATA", "RECORD", "WHEEL", "metadata.json"])
def test_a_file_that_describes_the_wheel_and_is_missing_is_a_finding(wheel, capfd, mutation, file):
    (name,) = (each for each in members_of(wheel) if each.endswith(f"/{file}"))
    mutate(wheel, mutation, name, repaired=False)
    assert cli.run(["audit", "--json", str(wheel)]) == 5
    shown = capfd.readouterr()
    assert shown.err == ""
    (report,) = json.loads(shown.out)["wheels"]
    assert (name, "layout") in {(finding["file"], finding["rule"]) for finding in report["findings"]}


@pytest.mark.parametrize("file", ["METADATA", "RECORD", "WHEEL", "metadata.json"])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_what_is_missing_is_named_where_a_wheel_is_published(wheel, tmp_path, capsys, command, file):
    (name,) = (each for each in members_of(wheel) if each.endswith(f"/{file}"))
    mutate(wheel, "drop", name, repaired=file != "RECORD")
    out = tmp_path / "out"
    assert cli.run([part.format(wheel=wheel, folder=wheel.parent, out=out) for part in command]) == 2
    assert file in capsys.readouterr().err
    assert not out.exists()
