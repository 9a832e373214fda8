"""What a machine may do to a command: full disks, closed streams, odd files and numbers; each is said in a line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from builder import cli
from builder.matrix.variant import Variant
from tests.given.processes import builder
from tests.paths import ROOT
from tests.wheels import make

RELU = ROOT / "examples" / "relu"
CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
ALL = (
    ("--help",), ("--version",), (), ("build", "--help"),
    ("check", str(RELU)), ("check", str(RELU), "--format", "json"), ("check", "--explain", "B120"),
    ("schema",), ("schema", "--format", "markdown"), ("matrix", str(RELU)), ("matrix", str(RELU), "--format", "json"),
    ("matrix", str(RELU), "--explain"), ("render", str(RELU), "--backend", "cpu"), ("completion", "bash"),
    ("pins", "check"),
)  # fmt: skip
HELP = tuple(pytest.param((name, "--help"), marks=pytest.mark.slow) for name in cli.COMMANDS if name != "build")
OLD = '[general]\nname = "old"\nbackends = ["cpu"]\nlicense = "MIT"\nversion = 1\n[torch]\nsrc = []\n'

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")


OPTIONS = {"capture_output": False, "stderr": subprocess.PIPE}


@needs_full
@pytest.mark.parametrize("arguments", [*ALL, *HELP], ids=" ".join)
def test_a_stdout_without_room_is_said(arguments):
    with Path("/dev/full").open("wb") as full:
        done = builder(*arguments, stdout=full, **OPTIONS)
    assert done.returncode == 4, done.stderr
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@needs_full
@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "{wheel}"), ("attest", "{wheel}", "--output", "{new}"), ("bundle", "{wheel}", "--output", "{new}"),
        ("index", "{wheels}", "--output", "{new}"), ("doctor", "--store", "{store}"), ("init", "{new}"),
        ("build", str(RELU), "--dry-run", "--store", "{store}"), ("why", str(RELU), "--store", "{store}"),
        ("matrix", str(RELU), "--format", "github"), ("publish", "{site}", "{new}", "--dry-run"),
        ("store", "list", "--store", "{old-store}"), ("update", "{old}", "--diff"),
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_a_result_for_which_there_is_no_room_is_said(arguments, tmp_path):
    (tmp_path / "wheels").mkdir()
    wheel = make(tmp_path / "wheels", "relu", CPU)
    places = {"wheel": wheel, "wheels": wheel.parent, "new": tmp_path / "new", "store": tmp_path / "store"}
    places |= {"site": tmp_path / "site", "old": tmp_path / "old", "old-store": tmp_path / "old-store"}
    (tmp_path / "old").mkdir()
    (tmp_path / "old/build.toml").write_text(OLD, encoding="utf-8")
    (tmp_path / "old-store/logs").mkdir(parents=True)
    (tmp_path / "old-store/logs/relu.log").touch()
    if "{site}" in arguments:
        assert cli.run(["index", str(wheel.parent), "--output", str(tmp_path / "site")]) == 0
    with Path("/dev/full").open("wb") as full:
        done = builder(*(each.format(**places) for each in arguments), stdout=full, **OPTIONS)
    assert done.returncode == 4, done.stderr
    assert "cannot write to stdout: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


@needs_full
def test_nothing_to_say_needs_no_room():
    with Path("/dev/full").open("wb") as full:
        assert builder("update", str(RELU), "--diff", stdout=full, **OPTIONS).returncode == 0


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("schema",), ("check", str(RELU))], ids=" ".join)
def test_a_stdout_that_is_closed_is_said(arguments):
    script = 'exec "$@" >&-'
    argv = ["sh", "-c", script, "sh", sys.executable, "-m", "builder", *arguments]
    done = subprocess.run(argv, check=False, stderr=subprocess.PIPE)
    assert done.returncode in (0, 4), done.stderr
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0 or b"closed" in done.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("check", "--help"), ("schema",)], ids=" ".join)
def test_a_reader_that_leaves_is_no_error(arguments):
    read, write = os.pipe()
    os.close(read)
    done = builder(*arguments, stdout=write, **OPTIONS)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@needs_full
def test_a_stderr_without_room_changes_no_exit_code():
    argv = [sys.executable, "-m", "builder", "check", "/nowhere"]
    with Path("/dev/full").open("wb") as full:
        assert subprocess.run(argv, check=False, stdout=subprocess.DEVNULL, stderr=full).returncode == 2


def test_a_statement_that_cannot_be_written_is_said(tmp_path, capsys):
    wheel = make(tmp_path, "relu", CPU)
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert cli.run(["attest", str(wheel), "--output", str(tmp_path / "file")]) == 4
    assert cli.run(["attest", str(wheel), "--output", "/proc/none"]) == 4
    assert "error: cannot" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("store", "gc", "--max-size", "9" * 400),
        ("store", "gc", "--max-age", "9" * 400 + "d"),
        ("store", "gc", "--max-size", "9" * 5000),
        ("store", "gc", "--max-age", "9" * 5000 + "d"),
        ("store", "gc", "--max-size", "²"),
        ("build", str(RELU), "--memory", "9" * 5000),
        ("build", str(RELU), "--time-limit", "9" * 5000 + "s"),
        ("build", str(RELU), "--jobs", "9" * 5000),
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_a_number_that_is_none_of_this_world_is_refused(arguments, tmp_path, capsys):
    assert cli.run([*arguments, "--store", str(tmp_path / "store")]) == 2
    assert "Error" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("store", "list"), ("store", "verify"), ("store", "gc", "--max-age", "1d")])
def test_a_store_that_is_none_is_said(command, tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    for place in (tmp_path / "file", tmp_path / "file" / "store", tmp_path / ("a" * 300), tmp_path / "loop"):
        (tmp_path / "loop").is_symlink() or (tmp_path / "loop").symlink_to("loop")
        assert cli.run([*command, "--store", str(place)]) in (0, 2, 4)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.skipif(os.getuid() != 0, reason="root becomes a user who may not read")
@pytest.mark.parametrize("command", [("store", "list"), ("store", "verify"), ("store", "gc", "--max-age", "1d")])
def test_a_store_that_cannot_be_read_is_said(command, tmp_path):
    store = tmp_path / "store"
    assert cli.run(["store", "gc", "--max-age", "1d", "--store", str(store)]) == 0
    for path in (store / "wheels", store):
        path.chmod(0)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # everything is imported: another user may not reach this folder
        os.setuid(54321)
        os.dup2(write, 2)
        code = 99
        try:
            code = cli.run([*command, "--store", str(store)])
        finally:
            os._exit(code)
    os.close(write)
    _, status = os.waitpid(child, 0)
    os.close(read)
    assert os.waitstatus_to_exitcode(status) in (2, 4)


@pytest.mark.parametrize("make_it", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_pin_file_that_is_none_is_said_at_once(make_it, tmp_path, capsys):
    make_it(tmp_path / "pins.toml")
    assert cli.run(["pins", "check", "--file", str(tmp_path / "pins.toml")]) in (2, 4)
    assert "error" in capsys.readouterr().err.lower()
