"""A kernel that loads others, built and tested with those that its lock names."""

import functools
import json
import shutil

import pytest

from tests import hub_folder
from tests.cli.folders import write
from tests.given import processes

pytestmark = [pytest.mark.torch, pytest.mark.cmake]

INIT = """\
from kernels import get_kernel_dep

base = get_kernel_dep("team/base")
assert base.ANSWER == 42
"""
TESTS = """\
import os

import user


def test_the_answer():
    assert user.base.ANSWER == 42
    assert os.environ["LOCAL_KERNELS"].startswith("team/base=")
"""


@pytest.fixture
def builder(tmp_path):
    env = {"BUILDER_KERNELS": tmp_path / "hub"}
    return functools.partial(processes.builder, store=tmp_path / "store", env=env, cwd=tmp_path)


@pytest.fixture
def user(tmp_path):
    folder = hub_folder.depend(write(tmp_path, "user"), "team/base")
    (folder / "torch-ext/user/__init__.py").write_text(INIT, encoding="utf-8")
    (folder / "tests").mkdir()
    (folder / "tests/test_user.py").write_text(TESTS, encoding="utf-8")
    return folder


def build(builder, *arguments):
    done = builder("build", "user", "--no-isolation", "--json", *arguments)
    (cell,) = json.loads(done.stdout)
    return done, cell


@pytest.mark.slow
@pytest.mark.usefixtures("user")
def test_a_kernel_is_loaded_and_tested_with_what_its_lock_names(builder, tmp_path):
    commit = hub_folder.add(tmp_path / "hub", "team/base", hub_folder.kernel(init="import torch\nANSWER = 42\n"))
    assert builder("lock", "user").returncode == 0
    done, cell = build(builder)
    assert done.returncode == 0, done.stderr
    assert cell["report"]["load-test"]["outcome"] == "loaded"
    assert f"team/base {commit[:7]}" in cell["report"]["load-test"]["packages"]
    tested = builder("test", "user")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "1 passed" in tested.stdout
    # The lock is no part of the build key: the wheel's bytes are the same with another one.
    hub_folder.add(tmp_path / "hub", "team/base", hub_folder.kernel(init="ANSWER = 42  # newer\n"))
    assert builder("lock", "user").returncode == 0
    assert build(builder)[1]["status"] == "hit"


@pytest.mark.slow
@pytest.mark.usefixtures("user")
def test_a_kernel_without_a_lock_is_kept_and_told_how_to_lock(builder):
    done, cell = build(builder)
    assert done.returncode == 0, done.stderr
    assert cell["report"]["load-test"]["outcome"] == "not-tested"
    assert "`builder lock` brings it" in cell["report"]["load-test"]["reason"]


@pytest.mark.slow
def test_what_is_wrong_with_a_lock_fails_the_cell_and_says_what_to_do(builder, user, tmp_path):
    hub = tmp_path / "hub"
    hub_folder.add(hub, "team/base", hub_folder.kernel(variants=("torch-cuda", "torch29-cxx11-cu130-x86_64-linux")))
    assert builder("lock", "user").returncode == 0
    done, _ = build(builder)
    assert done.returncode == 4
    assert "has no variant for torch-cpu, but torch-cuda, torch29-cxx11-cu130-x86_64-linux" in done.stderr
    shutil.rmtree(tmp_path / "store")
    shutil.rmtree(hub)
    done, _ = build(builder)
    assert done.returncode == 4
    assert "hf download team/base" in done.stderr
    (user / "kernels.lock").write_text("[]")
    done, _ = build(builder)
    assert "'team/base' (version 1) is not in kernels.lock" in done.stderr
    assert build(builder, "--load-test", "skip")[0].returncode == 0
    tried, cell = build(builder, "--load-test", "try", "--rebuild")
    assert tried.returncode == 0, tried.stderr
    assert cell["report"]["load-test"]["outcome"] == "not-tested"
