"""`builder doctor` and `builder init` on a machine that has nothing."""

import functools
import json
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from builder import doctor
from builder.cli import run
from builder.matrix import rows
from builder.toolchain.tool import installing
from tests.paths import ROOT


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Return a function that runs `builder` where PATH has nothing and there is no home; one command runs once."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "nothing").mkdir()

    @functools.cache
    def call(*arguments, cwd=folder, **environ):
        variables = {"PATH": str(folder / "nothing"), "PYTHONPATH": str(ROOT), **environ}
        command = [sys.executable, "-m", "builder", *arguments]
        return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False)

    return call


def test_doctor_says_of_everything_that_is_missing_how_to_get_it(bare):
    done = bare("doctor", HOME="/nonexistent")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    missing = {line[3:22].strip(): line[22:] for line in done.stdout.splitlines() if "missing;" in line}
    assert {"C++ compiler", "CUDA toolkit", "ROCm", "oneAPI", "binutils", "git", "Nix"} <= missing.keys()
    for name, tool in (("C++ compiler", "g++"), ("binutils",) * 2, ("git",) * 2, ("Nix", "nix")):
        assert installing(tool) in missing[name]
    assert installing("g++") not in missing["CUDA toolkit"]
    assert "needs a C++ compiler" in missing["CUDA toolkit"]
    assert "0 of " in done.stderr


def test_every_cell_that_cannot_be_built_has_its_reason(bare):
    done = bare("doctor", "--json", HOME="/nonexistent")
    cells = json.loads(done.stdout)["cells"]
    assert len(cells) == sum(row.set == "release" and row.variant is not None for row in rows())
    assert not [cell for cell in cells if cell["buildable"] or not cell["missing"]]


def test_cells_that_lack_the_same_share_a_line_with_the_command_that_adds_it(bare):
    done = bare("doctor", HOME="/nonexistent")
    variants = [row.variant for row in rows() if row.set == "release" and row.variant is not None]
    lines = done.stdout.splitlines()
    assert sorted(name for line in lines if line.startswith("    torch") for name in line.split()) == sorted(variants)
    needs = [line for line in lines if re.fullmatch(r"--  [0-9]+ cells?: .+", line)]
    assert len(needs) == len(set(needs)) < len(variants) / 2
    assert len(lines) <= 60  # a screen
    assert "builder matrix --system aarch64-darwin --format github" in done.stdout


def test_the_memory_and_the_cores_are_shown(bare):
    assert re.search(
        r"^ok  cores, memory +[0-9]+, [0-9]+ GiB for compilers$",
        bare("doctor", HOME="/nonexistent").stdout,
        re.MULTILINE,
    )


@pytest.mark.parametrize(("trusted", "words"), [("*", "trusted user"), ("@nobody-s", "not a trusted user")])
def test_whether_nix_trusts_this_user_is_shown(monkeypatch, trusted, words):
    monkeypatch.setattr(os, "geteuid", lambda: pwd.getpwnam("nobody").pw_uid)
    assert doctor.trust(f"root {trusted}") == words


def test_init_and_check_need_nothing(bare):
    assert bare("init", "my-kernel").returncode == 0
    done = bare("check", "--strict", "my-kernel")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_folder_that_is_gone_is_said(tmp_path):
    script = f"mkdir gone; cd gone; rmdir ../gone; exec {sys.executable} -m builder init my-kernel"
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    command = ["bash", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the current folder is not there any more" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="no folder that even root cannot write")
def test_a_folder_that_cannot_be_written_is_said(bare):
    done = bare("init", "my-kernel", cwd="/sys/kernel")
    assert done.returncode == 2
    assert "cannot write 'my-kernel'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_user_without_any_home_is_told_how_to_name_a_store(monkeypatch, capsys):
    for name in ("HOME", "BUILDER_STORE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    monkeypatch.setattr(pwd, "getpwuid", Mock(side_effect=KeyError))
    assert run(["doctor"]) == 2
    assert "name one with --store, BUILDER_STORE or HOME" in capsys.readouterr().err
    monkeypatch.setenv("BUILDER_STORE", "/nonexistent/store")
    assert run(["doctor"]) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_store_that_cannot_be_written_is_said(bare, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o555)
    done = bare("doctor", BUILDER_STORE=str(tmp_path / "closed" / "store"))
    assert done.returncode == 0, done.stderr
    assert f"missing; '{tmp_path / 'closed'}' cannot be written: name another" in done.stdout


def test_it_looks_at_sets_of_rows_as_every_command_does(bare):
    release = bare("doctor", "--json", HOME="/nonexistent")
    every = bare("doctor", "--json", "--set", "all")
    assert len(json.loads(every.stdout)["cells"]) > len(json.loads(release.stdout)["cells"])
    assert "of release, preview and legacy can be built here" in bare("doctor", "--set", "all").stderr
