"""`builder build --part` and `--per-file`: what nobody would get is refused before anything is made."""

import pytest

from builder.cli import run
from tests.paths import ROOT

TINY = ROOT / "tests/data/kernels/tiny"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--part", "3/2"), "not a part such as 1/4"),
        (("--part", "1/2", "--no-cache"), "--no-cache keeps nothing"),
        (("--part", "1/2", "--cache", "/shared"), "--cache-access read gives them nothing"),
        (("--part", "1/2", "--engine", "nix"), "have no parts"),
    ],
)
def test_a_part_that_nobody_would_get_is_refused(options, message, tmp_path, capsys):
    assert run(["build", str(TINY), "--store", str(tmp_path), *options]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_files_by_themselves_are_refused_without_nix(tmp_path, capsys):
    assert run(["build", str(TINY), "--store", str(tmp_path), "--per-file"]) == 2
    assert "--per-file is for derivations of Nix" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
