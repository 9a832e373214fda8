"""Which Python builds."""

import functools
import sys
from pathlib import Path

import pytest

from builder import matrix, toolchain
from builder.config import Framework
from builder.environment import indexes, interpreters
from builder.errors import NotHereError, ToolError
from builder.pins import MissingPinsError, PinnedPart, PinnedWheel, Pins, Requirement
from builder.plan import buildable
from tests.given.calls import noting

HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
WHEEL = PinnedWheel(file="ninja-1.0-py3-none-any.whl", name="ninja", version="1.0", sha256="ab" * 32)


def pinned_for(*pythons):
    table = {"x86_64-linux": dict.fromkeys(pythons, (WHEEL.file,))}
    part = PinnedPart(name="tools", about="", requires=("ninja",), wheels=table)
    return Pins(pythons=pythons, recipes={"torch": (("tools",),)}, parts=(part,), wheels={WHEEL.file: WHEEL})


@pytest.fixture
def requirement():
    return Requirement(framework=Framework.TORCH, version="2.13", compute="cpu", python=HERE, system="x86_64-linux")


@pytest.fixture
def search(tmp_path):
    finders = indexes.read({"PATH": str(tmp_path), "HOME": str(tmp_path)}, files=())
    return functools.partial(interpreters.find, finders=finders)


def test_the_running_python_builds_when_it_has_pins(requirement, search):
    found = interpreters.interpreter_for(pinned_for("cp35", HERE, "cp399"), requirement, search=search)
    assert found == interpreters.Interpreter(path=Path(sys.executable), tag=HERE)


def test_pins_for_no_python_on_this_machine_name_those_that_would_do(requirement, search):
    with pytest.raises(ToolError) as error:
        interpreters.interpreter_for(pinned_for("cp398", "cp399"), requirement, search=search)
    assert "needs 3.98, 3.99" in str(error.value)
    assert "--python" in str(error.value)


def test_a_python_that_is_named_is_preferred_where_it_has_pins(requirement, search, tmp_path):
    other = tmp_path / "python"
    other.symlink_to(sys.executable)
    found = interpreters.interpreter_for(pinned_for(HERE), requirement, search=search, preferred=other)
    assert found == interpreters.Interpreter(path=other, tag=HERE)
    another = tmp_path / "another"
    another.write_text('#!/bin/sh\necho cp398\necho "$0"\n')
    another.chmod(0o755)
    found = interpreters.interpreter_for(pinned_for(HERE, "cp398"), requirement, search=search, preferred=another)
    assert found == interpreters.Interpreter(path=another, tag="cp398")
    found = interpreters.interpreter_for(pinned_for(HERE), requirement, search=search, preferred=another)
    assert found.path == Path(sys.executable)


def test_a_cell_for_one_python_takes_that_or_says_what_is_missing(requirement, search, tmp_path):
    known = pinned_for(HERE, "cp398")
    found = interpreters.interpreter_for(known, requirement, search=search, only=HERE)
    assert found.tag == HERE
    other = tmp_path / "other"
    found = interpreters.interpreter_for(
        known, requirement, only="cp398", preferred=Path(sys.executable), search=lambda _: other
    )
    assert found == interpreters.Interpreter(path=other, tag="cp398")
    with pytest.raises(NotHereError, match=r"needs 3\.98"):
        interpreters.interpreter_for(known, requirement, only="cp398", search=lambda _: None)
    with pytest.raises(MissingPinsError, match=r"with Python 3\.99, the one that this cell is for"):
        interpreters.interpreter_for(known, requirement, search=search, only="cp399")


def test_a_python_may_be_named_from_the_current_folder(requirement, search, tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    monkeypatch.chdir(tmp_path)
    found = interpreters.interpreter_for(pinned_for(HERE), requirement, search=search, preferred=Path("bin/python"))
    assert found.path == tmp_path / "bin/python"


def test_a_python_that_is_named_and_does_not_run_is_said(requirement, search, tmp_path):
    with pytest.raises(ToolError, match="is not a Python that runs"):
        interpreters.interpreter_for(pinned_for(HERE), requirement, search=search, preferred=tmp_path / "nothing")


def test_no_pins_at_all_are_missing_pins(requirement, search):
    with pytest.raises(MissingPinsError):
        interpreters.interpreter_for(pinned_for(), requirement, search=search)


def test_another_python_on_path_is_found(tmp_path, search):
    (tmp_path / f"python{sys.version_info.major}.{sys.version_info.minor}").symlink_to(sys.executable)
    found = search(HERE)
    assert found is not None
    assert found.exists()
    assert search("cp399") is None


def test_the_newest_python_is_searched_for_first(requirement):
    asked = []
    noted = noting(lambda tag: Path("/python") if tag == "cp398" else None, asked)
    found = interpreters.interpreter_for(pinned_for("cp398", "cp399"), requirement, search=noted)
    assert found == interpreters.Interpreter(path=Path("/python"), tag="cp398")
    assert asked == ["cp399", "cp398"]


def test_uv_is_asked_once_for_each_python_and_not_for_each_row(monkeypatch):
    asked = []
    monkeypatch.setattr(interpreters, "running", lambda: None)
    monkeypatch.setattr(interpreters, "find", lambda tag, **_: asked.append(tag))
    rows = tuple(row for row in matrix.rows() if row.system == toolchain.system())
    verdicts = list(buildable.row_support(rows, {"PATH": ""}))
    assert len(verdicts) == len(rows) > len(asked) > 0
    assert len(asked) == len(set(asked))
