"""`builder watch` on a small real kernel, as its author runs it."""

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
TINY = ROOT / "tests/data/kernels/tiny"
CALL = "import tiny, torch\n\ndef test_twice():\n    assert tiny.twice(torch.ones(3)).tolist() == [2.0] * 3\n"
PATIENCE = 120

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="cells of x86_64-linux"),
]


class Watch:
    """A running command, and the lines that it has written."""

    def __init__(self, kernel, store):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "builder", "watch", kernel],
            env={**os.environ, "BUILDER_STORE": str(store), "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs here
        )
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        assert "watching" in self.next()

    def _read(self):
        with self.process.stdout as lines:
            for line in lines:
                self.lines.put(line.rstrip("\n"))

    def next(self):
        return self.lines.get(timeout=PATIENCE)

    def round(self):
        """Return the next round without its time, and what stands below it until nothing more comes."""
        line = self.next()
        while line.startswith("  "):
            line = self.next()
        time.sleep(0.2)
        below = []
        while not self.lines.empty():
            below.append(self.lines.get())
        return line.split("  ", 1)[1], "\n".join(below)

    def last(self):
        """Return what was written after the last round."""
        self.reader.join()
        return "".join(self.lines.queue)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def end(self, sign=signal.SIGINT):
        self.process.send_signal(sign)
        return self.process.wait(timeout=30)


@pytest.fixture
def kernel(tmp_path):
    folder = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    (folder / "tests").mkdir()
    (folder / "tests/test_tiny.py").write_text(CALL)
    return folder


@pytest.fixture
def watch(kernel, tmp_path_factory):
    running = Watch(kernel, tmp_path_factory.getbasetemp() / "store-of-tests")
    yield running
    running.kill()


def replace(path, old, new):
    path.write_text(path.read_text().replace(old, new))


def test_each_save_is_a_round_and_ctrl_c_ends_it(watch, kernel):
    line, _ = watch.round()
    # Another test may have built it.
    assert re.match(r"ok      start: (unchanged|built \(\d+ of \d+ files compiled\)), 1 passed, ", line)

    replace(kernel / "csrc/twice.cpp", "FACTOR * input[i];", "FACTOR * input[i]")
    line, below = watch.round()
    assert line.startswith("FAILED  csrc/twice.cpp: not built, ")
    first, second = below.splitlines()[:2]
    assert "the build failed" in first
    assert "twice.cpp:5:" in second
    assert "error: expected" in second

    replace(kernel / "build.toml", "[general]", "[general")
    line, below = watch.round()
    assert line.startswith("FAILED  build.toml: not built, ")
    assert "build.toml:" in below

    (kernel / "dist").mkdir()
    (kernel / "notes.txt").touch()
    replace(kernel / "build.toml", "[general", "[general]")
    replace(kernel / "csrc/twice.cpp", "FACTOR * input[i]", "FACTOR * input[i];")
    line, _ = watch.round()
    assert line.startswith("ok      build.toml and 1 more: unchanged, 1 passed, ")

    replace(kernel / "tests/test_tiny.py", "[2.0]", "[3.0]")
    line, below = watch.round()
    assert line.startswith("FAILED  tests/test_tiny.py: unchanged, 1 failed, ")
    assert below.splitlines()[0] == "  tests.test_tiny::test_twice: assert [2.0, 2.0, 2.0] == [3.0, 3.0, 3.0]"
    assert "--> tests/test_tiny.py:4" in below
    log = Path(below.rpartition("log: ")[2])
    assert "assert [2.0, 2.0, 2.0] == [3.0, 3.0, 3.0]" in log.read_text()

    assert watch.end() == 130
    assert watch.last() == "interrupted"


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_a_save_in_a_round_is_the_next_one_and_its_build_can_be_ended(watch, kernel, sign):
    # More than a compiler can do before the test goes on.
    save(kernel / "csrc/twice.cpp", f"// ended by {sign.name}\n#include <regex>\n#include <iostream>\n#include <map>\n")
    time.sleep(1.5)
    save(kernel / "csrc/twice.cpp", "#include <random>\n")
    save(kernel / "csrc/twice.h", "#include <vector>\n")
    watch.round()
    line, _ = watch.round()
    assert re.match(r"ok      csrc/twice.cpp and 1 more: built \([23] of \d+ files compiled\), 1 passed, ", line), line
    assert watch.lines.empty(), "several saves are one round"
    save(kernel / "csrc/twice.cpp", "#include <functional>\n")
    _compiling(watch.process.pid)
    assert watch.end(sign) == 130
    assert watch.last() == "interrupted"
    time.sleep(1)
    assert _below(watch.process.pid) == []


def save(path, text):
    path.write_text(text + path.read_text())


def _below(pid):
    """Return the command lines of the tools that a process runs."""
    done = subprocess.run(["ps", "-A", "-ww", "-o", "ppid=,args="], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if line.split()[0] == str(pid)]


def _compiling(pid):
    deadline = time.monotonic() + PATIENCE
    while not any("build_wheel" in line or "enter.py" in line for line in _below(pid)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_kernel_without_tests_is_built(kernel, tmp_path_factory):
    shutil.rmtree(kernel / "tests")
    watch = Watch(kernel, tmp_path_factory.getbasetemp() / "store-of-tests")
    try:
        line, _ = watch.round()
        assert ", no tests, " in line
        (kernel / "tests").mkdir()
        (kernel / "tests/test_tiny.py").write_text(CALL)
        line, _ = watch.round()
        assert line.startswith("ok      tests/test_tiny.py: unchanged, 1 passed, ")
    finally:
        watch.kill()
