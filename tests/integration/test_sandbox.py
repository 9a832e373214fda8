"""A hostile kernel gets nothing of the machine that builds it; an honest one is the same file as without a sandbox."""

import json
import os
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from builder import sandbox
from tests.given import processes
from tests.given.files import edit
from tests.given.kernels import PLAIN_CELL, linux
from tests.integration import compiling, hostile

OPEN = json.dumps({"without": ["sandbox"]})

pytestmark = [
    pytest.mark.cmake,
    linux,
    pytest.mark.skipif(sandbox.why_unavailable() is not None, reason=f"no sandbox here: {sandbox.why_unavailable()}"),
]


@pytest.fixture
def tries(tmp_path, store):
    with hostile.prey(tmp_path, pid=os.getpid(), store=store) as found:
        yield found


@pytest.fixture
def run(builder, plain, tmp_path):
    """Build the kernel for a user with a home and a secret; every source is compiled, unless objects may be `kept`."""

    def run(*options, env=None, kept=False, **more):
        own = {"HOME": tmp_path / "somebody", "SECRET": hostile.TOKEN, **(env or {})}
        own |= {} if kept else {"CCACHE_DISABLE": "1"}
        return builder("build", plain, "--variant", PLAIN_CELL, *options, env=own, **more)

    return run


def test_a_package_gets_nothing_while_it_is_imported(run, plain, tries, tmp_path):
    hostile.importing(plain, tries)
    run(check=0, kept=True)
    assert not (tmp_path / "written").exists()


@pytest.mark.slow
def test_the_same_package_gets_everything_without_a_sandbox(run, plain, tries, tmp_path):
    hostile.importing(plain, replace(tries, rough=False))
    done = run("--experiment", OPEN, check=5, kept=True)
    for what in ("environment", "parent", "signal", "loopback", "unix socket", f"write {tmp_path / 'written'}"):
        assert what in done.stderr
    assert str(tmp_path / "somebody/.netrc") in done.stderr


def test_a_compiler_gets_nothing_while_it_compiles(run, plain, tries, tmp_path):
    # A store keeps the log of the last build of each name.
    edit(plain / "build.toml", 'name = "plain"', 'name = "alone"')
    (plain / "ctypes-ext/plain").rename(plain / "ctypes-ext/alone")
    found = hostile.compiler(tmp_path, tries, "the compiler got:")
    done = run("--json", "--rebuild", env={"CXX": str(found)}, check=0)
    log = Path(json.loads(done.stdout)[0]["log"]).read_text()
    assert {line for line in log.splitlines() if "the compiler got: " in line} == {"the compiler got: nothing"}
    (tmp_path / "tools").rename(tmp_path / "tools of before")
    found = hostile.compiler(tmp_path, replace(tries, rough=False), "the compiler got:")
    run("--rebuild", "--experiment", OPEN, env={"CXX": str(found)}, check=0)
    log = Path(json.loads(done.stdout)[0]["log"]).read_text()
    got = next(line for line in log.splitlines() if line.startswith("the compiler got: "))
    assert "loopback" in got
    assert tries.files[0] in got


@pytest.mark.slow
def test_a_file_that_no_key_sees_is_not_there_for_the_assembler(run, plain, tries):
    hostile.including(plain / "csrc/scale.cpp", tries.files[0])
    done = run(check=4)
    assert f"file not found: {tries.files[0]}" in done.stderr
    run("--experiment", OPEN, check=0)


@pytest.mark.slow
def test_an_honest_kernel_has_the_same_bytes_and_says_where_it_was_built(run, tmp_path):
    (tmp_path / "somebody").mkdir()
    inside = json.loads(run("--json", check=0).stdout)[0]
    again = run("--json", "--experiment", OPEN, check=0)
    outside = json.loads(again.stdout)[0]
    assert inside["report"]["sandbox"] is True
    assert outside["report"]["sandbox"] is False
    assert outside["status"] == "built"  # and no hit: another wheel of that kind could have what no key sees
    assert inside["sha256"] == outside["sha256"]
    assert "1 built, 1 unsandboxed" in again.stderr
    assert "; unsandboxed" in again.stderr
    record = json.loads(next((tmp_path / "dist").glob("*.record.json")).read_text())
    assert record["sandbox"] is False


@pytest.mark.slow
def test_what_a_kernel_leaves_behind_ends_with_its_load_test(run, plain, tmp_path):
    (tmp_path / "somebody").mkdir()
    package = plain / "ctypes-ext/plain/__init__.py"
    mark = f"sleep-{os.getpid()}-{time.monotonic_ns()}"
    start = f"import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 300; : {mark}'], start_new_session=True)\n"
    package.write_text(f"{package.read_text()}\n{start}")
    run(check=0, kept=True)
    assert not marked(mark)


def marked(mark):
    """Return the processes whose command lines have a mark."""
    return [words for words in processes.running().values() if mark in " ".join(words)]


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGINT, id="Ctrl-C"),
        pytest.param(signal.SIGTERM, id="SIGTERM", marks=pytest.mark.slow),
    ],
)
def test_an_import_that_never_ends_is_over_soon_after_a_signal(store, plain, tmp_path, number):
    mark = f"forever-{os.getpid()}-{time.monotonic_ns()}"
    package = plain / "ctypes-ext/plain/__init__.py"
    shell = f"trap '' TERM INT; sleep 300; : {mark}"
    deaf = "import signal, subprocess\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    loop = f"{deaf}subprocess.run(['sh', '-c', {shell!r}])\n"
    package.write_text(f"{package.read_text()}\n{loop}")
    began = []

    def runs():
        if marked(mark):
            began.append(time.monotonic())
        return began

    env = processes.variables(store)
    compiling.stopped(number, runs, "build", plain, "--variant", PLAIN_CELL, env=env, cwd=tmp_path)
    assert time.monotonic() - began[0] < 15  # the import takes 300; 1 s on a machine that does nothing else
    assert not marked(mark)


@pytest.mark.slow
def test_a_compiler_behind_a_script_is_found_with_its_parts(run, tmp_path):
    (tmp_path / "somebody").mkdir()
    real, wrapper = tmp_path / "sw/gcc/bin", tmp_path / "wrappers"
    real.mkdir(parents=True)
    wrapper.mkdir()
    shutil.copy("/usr/bin/g++", real / "g++")
    (real.parent / "lib").symlink_to("/usr/lib")
    (wrapper / "g++").write_text(f'#!/bin/sh\nexec "{real}/g++" "$@"\n')
    (wrapper / "g++").chmod(0o755)
    run("--rebuild", env={"CXX": str(wrapper / "g++")}, check=0)


@pytest.mark.slow
def test_what_no_compiler_tells_is_shown_where_the_user_names_it(run, tmp_path):
    (tmp_path / "somebody").mkdir()
    hidden, wrapper = tmp_path / "hidden", tmp_path / "wrappers"
    hidden.mkdir()
    wrapper.mkdir()
    (hidden / "flags").write_text("-DFOUND")
    (wrapper / "g++").write_text(f'#!/bin/sh\nexec /usr/bin/g++ "@{hidden}/flags" "$@"\n')
    (wrapper / "g++").chmod(0o755)
    env = {"CXX": str(wrapper / "g++")}
    assert f"{hidden}/flags" in run("--rebuild", env=env, check=4).stderr
    run("--rebuild", env={**env, "BUILDER_SANDBOX_PATHS": str(hidden)}, check=0)
