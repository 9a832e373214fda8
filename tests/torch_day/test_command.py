"""The command `builder torch-day`, with a release that no index is asked for."""

import pytest
from click.testing import CliRunner

from builder.cli import torch_day
from builder.errors import NothingToDoError
from builder.torch_day import read


@pytest.fixture
def written(data, newer, monkeypatch):
    """Run the command on this release, which no index is asked for."""
    monkeypatch.setattr(read, "read", lambda *_: newer)
    return lambda *arguments: CliRunner().invoke(torch_day.command, ["2.99", "--data", str(data), *arguments])


def test_what_it_wrote_itself_is_no_local_edit_when_it_runs_again(written, data):
    first = written("--write")
    assert "wrote matrix.toml, pins.toml" in first.stderr
    now = (data / "matrix.toml").read_text(encoding="utf-8")
    again = written("--write")
    assert again.exit_code == 0, again.stderr
    assert "nothing to change for torch 2.99.0" in again.stderr
    assert (data / "matrix.toml").read_text(encoding="utf-8") == now


def test_the_command_shows_a_change_over_local_edits_and_writes_it_only_when_asked(written, data):
    matrix = data / "matrix.toml"
    matrix.write_text(matrix.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    refused = written("--write")
    assert isinstance(refused.exception, NothingToDoError)
    assert str(refused.exception).startswith("files with local edits would be written over: matrix.toml")
    assert '+  { torch = "2.99"' in refused.stdout
    assert "2.99" not in matrix.read_text(encoding="utf-8")
    assert written("--write", "--over-edits").exit_code == 0
    text = matrix.read_text(encoding="utf-8")
    assert '{ torch = "2.99"' in text
    assert text.endswith("# mine\n")
