"""A wheel is the same bytes whether CMake looked at the compilers or had the answers of an earlier build."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from builder.store import Store
from tests.integration.test_compile_cache import Machine, environments  # noqa: F401  a fixture
from tests.paths import ROOT

TINY = ROOT / "tests/data/kernels/tiny"
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"
LOOKS = "The CXX compiler identification is"

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux"),
]


@pytest.fixture
def store(tmp_path, environments):  # noqa: F811
    """A store of its own, whose logs and notes no other test writes."""
    return Store(Machine(tmp_path / "machine", environments).store)


@pytest.fixture
def build(store, tmp_path):
    """Build a kernel again; return the digest of its wheel, and what CMake and the compilers said."""

    def run():
        command = ["build", str(TINY), "--variant", VARIANT, "--rebuild", "--json", "--output", str(tmp_path)]
        done = subprocess.run(
            [sys.executable, "-m", "builder", *command],
            env={**os.environ, "BUILDER_STORE": str(store.root), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        (result,) = json.loads(done.stdout)
        if not result["report"]["canonical-path"]:
            pytest.skip("no canonical path without user namespaces, and answers are kept there alone")
        log = store.log("tiny", VARIANT).read_text(encoding="utf-8")
        return hashlib.sha256(Path(result["wheel"]).read_bytes()).hexdigest(), log

    return run


def test_kept_answers_change_no_byte_and_wrong_ones_stop_no_build(build, store):
    first, _ = build()
    again, said = build()
    assert again == first
    assert LOOKS not in said
    (note,) = (path.stem for path in (store.root / "notes").glob("compilers-cpu-*.json"))
    kept = store.note(note)
    store.set_note(note, {**kept, "files": dict.fromkeys(kept["files"], 'message(FATAL_ERROR "not taken")\n')})
    without, said = build()
    assert without == first
    assert "not taken" in said
    assert LOOKS in said
    healed, said = build()
    assert healed == first
    assert LOOKS not in said
