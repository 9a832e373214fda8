"""The size of a wheel, known from the build that was refused for it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

VARIANT = "torch-stable-abi210-cpu-x86_64-linux"

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux"),
]


def test_a_wheel_that_was_too_large_is_announced_before_it_is_built_again(store, tmp_path):
    kernel = Path(shutil.copytree(ROOT / "tests/data/kernels/tiny", tmp_path / "tiny"))
    config = kernel / "build.toml"
    config.write_text(config.read_text().replace("[torch]", '[wheel]\nmax-size = "1 kB"\n\n[torch]'))

    def build(*options):
        command = [sys.executable, "-m", "builder", "build", kernel, "--variant", VARIANT, *options]
        env = {**os.environ, "BUILDER_STORE": str(store), "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)

    planned = build("--dry-run")
    assert "no estimate of its size before its first build here; 1 kB are allowed" in planned.stdout, planned.stderr
    first = build()
    assert (first.returncode, "its wheel will have" in first.stderr) == (5, False), first.stderr
    assert "the wheel may have 1 kB (1,000 bytes)" in first.stderr
    (plan,) = json.loads(build("--dry-run", "--json").stdout)
    assert plan["estimated-size"] > 1000
    assert f"warning: {VARIANT}: its wheel will have about " in build().stderr
    explained = subprocess.run(
        [sys.executable, "-m", "builder", "matrix", kernel, "--explain", "--store", store],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert f"{VARIANT}: its wheel: about " in explained.stderr
