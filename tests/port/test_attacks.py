"""A setup.py that attacks who ports it: nothing outside of its sandbox changes, is read or stays."""

import json

import pytest

from builder import sandbox
from builder.cli import run
from builder.errors import BuilderError
from builder.port import port
from builder.port import record as recorder
from builder.port.record import record
from tests.given import processes
from tests.port.projects import CUDA, OLD, SIMPLE, write

HEAD = "import os, sys, time, shutil, socket, subprocess\n"
KEY = "PRIVATE-KEY-OF-A-USER"
MARK = "builder-attack-sleeps"
RESULT = json.dumps({"failure": None, "setup": {"at": "", "texts": {"name": KEY}}})
pytestmark = pytest.mark.skipif(sandbox.why_unavailable() is not None, reason=sandbox.why_unavailable() or "-")


@pytest.mark.parametrize(
    ("attack", "failure"),
    [
        pytest.param("open('{victim}', 'w')", "No such file", id="writes elsewhere"),
        pytest.param("open('/usr/bin/attack', 'w')", "Read-only", id="writes to the system"),
        pytest.param("os.unlink('/tmp/builder/spec.json')", "Read-only", id="what the next run reads"),
        pytest.param("os.symlink('{victim}', '/tmp/builder/cuda/new')", "Read-only", id="what the next run writes"),
        pytest.param("os.rename('/tmp/builder/tree', '/tmp/builder/other')", "busy|Read-only", id="moves its tree"),
        pytest.param("os.symlink('{victim}', '/tmp/builder/out/result.json'); os._exit(0)", "ended", id="links out"),
        pytest.param("os.mkfifo('/tmp/builder/out/result.json'); os._exit(0)", "ended its", id="a pipe"),
        pytest.param("os.truncate(os.open('/tmp/builder/out/result.json', 66, 384), 9 << 20); os._exit(0)",
                     "more than can be recorded", id="a huge answer"),
        pytest.param("raise ValueError(open('{victim}').read())", "No such file", id="reads a key"),
        pytest.param("raise ValueError(os.listdir('{home}'))", "No such file", id="lists the home"),
        pytest.param("socket.create_connection(('192.0.2.1', 80), 1)", "OSError: .*unreach", id="the network"),
        pytest.param("time.sleep(99)", "longer than 1 seconds", id="sleeps"),
        pytest.param("subprocess.Popen(['sleep', '98.7'], start_new_session=True); os._exit(3)", "ended", id="forks"),
        pytest.param("os.kill(-1, 9)", "No such process", id="kills all"),
        pytest.param("x = bytearray(8 << 30)", "MemoryError", id="memory"),
        pytest.param("os.truncate(os.open('big', 66, 384), 1 << 40)", "File too large|ended its", id="a large file"),
        pytest.param("for n in range(9): os.posix_fallocate(os.open(f'{{n}}', 66, 384), 0, 100 << 20)\ntime.sleep(59)",
                     "it wrote more than 512 MiB", id="many files"),
        pytest.param("for n in range(9): os.posix_fallocate(os.open(f'/dev/shm/{{n}}', 66, 384), 0, 100 << 20)\n"
                     "time.sleep(59)", "it wrote more than 512 MiB", id="shared memory"),
        pytest.param("for n in range(1100): os.mkdir('x'); os.chdir('x')\nsys.exit(1)", "exit", id="deep folders"),
        pytest.param("os.mkdir('c'); open('c/x', 'w'); os.chmod('c', 0); sys.exit(1)", "exit", id="a closed folder"),
        pytest.param("os.symlink('/', 'all'); os.symlink('..', 'up'); sys.exit(1)", "exit", id="links in its tree"),
        pytest.param("raise ValueError('\\x1b[2J\\x9b31m\\u202e')", "it raised ValueError", id="control characters"),
    ],
)  # fmt: skip
def test_an_attack_changes_nothing_reads_nothing_and_ends(tmp_path, monkeypatch, attack, failure):
    monkeypatch.setattr(recorder, "_MOST_WRITTEN", 512 << 20)
    home, kernel, scratch = (tmp_path / name for name in ("home", "kernel", "scratch"))
    victim = home / ".ssh/key"
    write(kernel, HEAD + attack.format(victim=victim, home=home) + "\n" + SIMPLE)
    for folder in (victim.parent, scratch):
        folder.mkdir(parents=True)
    victim.write_text(RESULT)
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*") if path != scratch}
    found = record(kernel, home=home, among=(CUDA, OLD), seconds=1 if "longer" in failure else 60)
    assert [found.runs[0].failure, found.runs[1].failure] == [found.runs[0].failure] * 2
    with pytest.raises(BuilderError, match=f"(?s)cannot be recorded.*({failure})"):
        port(found, kernel)
    assert KEY not in repr(found)
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*") if path != scratch} == before
    assert not any(scratch.iterdir())
    assert not [words for words in processes.running().values() if "98.7" in words]


def test_no_control_character_of_a_setup_reaches_the_terminal_or_the_config(tmp_path, capsys):
    bad = "\\x1b[2J\\x9b31m\\u202e\\r"
    text = SIMPLE.replace('version="2.1"', f'version="2.1{bad}", url="https://{bad}", license="{bad}"')
    text = text.replace('"csrc/scale.cu"]', f'"csrc/scale.cu", "csrc/{bad}.cu"], libraries=["{bad}"]')
    text = text.replace('"-Wall"', f'"-Wall", "-D{bad}", "-x{bad}"').replace('("WITH_X", None)', f'("{bad}", "1")')
    write(
        tmp_path, text.replace('packages=["scale_it"]', f'packages=["scale_it", "{bad}"], install_requires=["{bad}"]')
    )
    run(["port", str(tmp_path)])
    said = capsys.readouterr()
    config = tmp_path / "build.toml"
    shown = said.out + said.err + (config.read_text() if config.exists() else "")
    assert not [letter for letter in shown if not letter.isprintable() and letter != "\n"]
