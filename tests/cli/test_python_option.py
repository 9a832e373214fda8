import os
from pathlib import Path

import pytest

from builder.cli.arguments import PYTHON
from builder.environment import interpreters
from builder.errors import ToolError
from builder.toolchain import this_machine


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("python3.9", "pypy"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.mark.parametrize(("named", "found"), [("3.9", "python3.9"), ("python3.9", "python3.9"), ("pypy", "pypy")])
def test_a_version_or_a_name_is_looked_for_on_the_path(named, found, on_path):
    assert PYTHON(named) == on_path / found


@pytest.mark.parametrize(
    ("named", "left"),
    [("3.8", "python3.8"), ("python4", "python4"), ("./3.9", "./3.9"), ("/nowhere/3.9", "/nowhere/3.9")],
)
@pytest.mark.usefixtures("on_path")
def test_what_is_not_found_or_is_a_path_is_left(named, left):
    assert PYTHON(named) == Path(left)


@pytest.mark.parametrize("ask", [interpreters.at_hand, this_machine.installed_frameworks])
def test_a_python_that_is_not_there_is_told_without_the_words_of_a_traceback(ask, tmp_path):
    with pytest.raises(ToolError) as refused:
        ask(tmp_path / "none")
    assert "is not a Python that runs: there is no such file, and nothing of that name on PATH" in str(refused.value)
    assert "Errno" not in str(refused.value)
    (tmp_path / "text").write_text("")
    os.chmod(tmp_path / "text", 0o644)  # noqa: PTH101
    with pytest.raises(ToolError, match="Permission denied"):
        ask(tmp_path / "text")
