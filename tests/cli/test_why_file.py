"""`builder why FILE`: a file in place of a kernel's directory."""

import shutil

from builder.cli import run
from tests.paths import ROOT

TINY = ROOT / "tests/data/kernels/tiny"
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"


def test_a_file_outside_of_a_kernel_is_refused(tmp_path, capsys):
    (tmp_path / "one.cpp").write_text("")
    assert run(["why", str(tmp_path / "one.cpp")]) == 2
    assert "is in no kernel" in capsys.readouterr().err


def test_a_file_of_which_no_build_is_known_is_told(tmp_path, capsys):
    kernel = shutil.copytree(TINY, tmp_path / "tiny")
    code = run(["why", str(kernel / "csrc/factor.h"), "--variant", VARIANT, "--store", str(tmp_path / "store")])
    assert code == 3
    assert "no object of 'csrc/factor.h' is known" in capsys.readouterr().err
