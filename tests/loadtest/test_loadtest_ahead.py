"""A load test that begins before its wheel is there tells what one tells that begins with it."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from builder import kernel, loadtest, matrix
from builder.loadtest import process
from builder.loadtest.load_outcome import LoadState
from builder.loadtest.packages import LoadTestPackages
from builder.run import Processes
from builder.sandbox import SandboxPaths
from tests.given.environments import made_up_torch
from tests.given.files import names
from tests.given.processes import until
from tests.paths import ROOT

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc: apt-get install gcc"),
]

OPS = "_mine_cpu_1"
CELL = next(
    cell
    for cell in matrix.select(kernel.load(ROOT / "examples/relu").config, matrix.rows())
    if cell.backend == "cpu" and cell.system == "x86_64-linux"
)
QUESTION = {
    "libraries": [{"ops": OPS, "file": None, "module": "_ops", "exports": []}],
    "key": "CPU",
    "stand-in": False,
}
FINE = "int mine;"
REFUSED = "void nowhere(void); void f(void) { nowhere(); }"
KILLED = "#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) { abort(); }"
SAYS_STDIN = "import os, sys\nraise RuntimeError(repr((sys.stdin.read(), os.fstat(0).st_rdev != 0)))\n"


@pytest.fixture
def setup(tmp_path):
    """Return what a load test has, before there is a package."""
    folder = tmp_path / "installed"
    folder.mkdir()
    usual = {"cell": CELL, **made_up_torch(tmp_path)}
    return lambda module="mine", **given: loadtest.Setup(package=folder / module, **usual | given)


def install(package, init, code):
    package.mkdir()
    (package / "__init__.py").write_text(init)
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(package / f"{OPS}.so")]
    subprocess.run(command, input=code, text=True, check=True)


REAL = {"python": Path(sys.executable), "packages": LoadTestPackages()}
CASES = {
    "nothing registered": ("", FINE),
    "a library that is refused": ("", REFUSED),
    "a library that ends the process": ("", KILLED),
    "a missing module": ("import no_such_module\n", FINE),
    "standard input": (SAYS_STDIN, FINE),
    "a part of the framework that is loaded": ("import torch\nassert torch.add\n", FINE),
}


@pytest.mark.parametrize("given", [{}, pytest.param(REAL, marks=pytest.mark.slow)], ids=["made up", "torch"])
@pytest.mark.parametrize("case", CASES)
def test_it_tells_what_a_process_tells_that_begins_with_the_wheel(setup, case, given):
    has = setup(**given)
    with loadtest.begun(has, early=True) as early:
        install(has.package, *CASES[case])
        found = loadtest.load(has, ops=OPS, early=early)
    assert found == loadtest.load(has, ops=OPS)
    assert found.outcome in (LoadState.BROKEN, LoadState.NOT_IMPORTABLE)


def test_it_is_the_early_process_that_tells(setup):
    has = setup()
    with loadtest.begun(has, early=True) as early:
        install(has.package, "", FINE)
        (library,) = QUESTION["libraries"]
        found = early.ask({**QUESTION, "libraries": [{**library, "file": str(has.package / f"{OPS}.so")}]})
    assert (found.library, found.failure, found.died) == (None, None, None)


@pytest.mark.parametrize("ahead", [True, False])
def test_what_a_process_does_at_its_end_is_not_waited_for(setup, ahead):
    has = setup()
    ended = has.package.parent / "ended"
    with contextlib.ExitStack() as held:
        early = held.enter_context(loadtest.begun(has, early=True)) if ahead else None
        install(has.package, f"import atexit, pathlib\natexit.register(pathlib.Path({str(ended)!r}).touch)\n", FINE)
        found = loadtest.load(has, ops=OPS, early=early)
    assert found.outcome is LoadState.BROKEN  # it registers nothing
    assert not ended.exists()


def test_a_package_that_the_framework_would_have_imported_is_loaded_by_a_fresh_process(setup):
    has = setup("typing_extensions")
    with loadtest.begun(has, early=True) as early:
        install(has.package, "raise RuntimeError('in the way')\n", FINE)
        assert early.ask(QUESTION).died is not None
    with loadtest.begun(has, early=True) as early:
        found = loadtest.load(has, ops=OPS, early=early)
    assert found == loadtest.load(has, ops=OPS)
    assert "in the way" in found.reason


def test_a_framework_that_cannot_be_imported_is_told_by_a_fresh_process(setup, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more/first.pth").write_text("import sys; sys.modules['torch'] = None\n")
    has = setup(packages=LoadTestPackages(folders=(tmp_path / "more",)))
    with loadtest.begun(has, early=True) as early:
        install(has.package, "import torch\n", FINE)
        found = loadtest.load(has, ops=OPS, early=early)
    assert found == loadtest.load(has, ops=OPS)
    assert "torch" in found.reason


def children():
    tasks = Path(f"/proc/{os.getpid()}/task").iterdir()
    return {pid for task in tasks for pid in (task / "children").read_text().split()}


def test_a_process_ends_where_what_waits_for_it_is_killed_and_leaves_what_the_build_removes(tmp_path):
    script = f"""
import os, sys
from pathlib import Path
from builder import loadtest
from tests.loadtest.test_loadtest_ahead import CELL, children
root = Path({str(tmp_path)!r})
has = loadtest.Setup(package=root / "mine", cell=CELL, python=Path(sys.executable), scratch=root / "scratch")
with loadtest.begun(has, early=True):
    print(*children(), flush=True)
    os.kill(os.getpid(), 9)
"""
    for name in ("scratch", "temporary"):
        (tmp_path / name).mkdir()
    env = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == -9, done.stderr
    until(lambda: not Path(f"/proc/{done.stdout.strip()}").exists())
    assert names(tmp_path / "scratch")
    assert not names(tmp_path / "temporary")


def test_a_process_that_waits_in_vain_ends_with_the_build(setup):
    before = children()
    with loadtest.begun(setup(), early=True):
        assert len(children() - before) == 1
    assert children() == before


def test_a_process_that_waits_ends_where_all_of_the_build_is_told_to(setup):
    processes = Processes()
    has = setup(processes=processes)
    with loadtest.begun(has, early=True) as early:
        install(has.package, "", FINE)
        canceller = threading.Thread(target=processes.cancel)
        canceller.start()
        began = time.monotonic()
        assert early.ask(QUESTION).died is not None
        assert time.monotonic() - began < 30
        canceller.join()


def test_bytecode_that_is_made_before_ends_there_too(monkeypatch):
    monkeypatch.setattr(process, "enclose", lambda argv, _visible: argv)
    processes, began = Processes(), time.monotonic()
    threading.Timer(0.2, processes.cancel).start()
    slow = "time; time.sleep(60)"
    loadtest.keep_bytecode(slow, python=Path(sys.executable), visible=SandboxPaths(), processes=processes)
    assert time.monotonic() - began < 30
