"""`builder build` on a small real tiny, with real tools, as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.version import Version

from tests.given.kernels import TINY_CELL as VARIANT
from tests.given.kernels import linux
from tests.integration import compiling
from tests.paths import ROOT

WHEEL = "tiny-1.0.0+torch.stable210.cpu-py3-none-manylinux_2_28_x86_64.whl"

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    linux,
]


def left_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_kernel_becomes_a_wheel_that_is_called(build, tiny, tmp_path):
    built = build(tiny, "--variant", VARIANT)[0]
    assert Path(built["wheel"]).name == WHEEL
    assert next(iter(built["report"]["ops"].values())) == ["CPU"]
    site = tmp_path / "site"
    zipfile.ZipFile(tmp_path / built["wheel"]).extractall(site)
    call = "import torch, tiny; assert tiny.twice(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]; print('right')"
    env = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run([sys.executable, "-c", call], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "right", done.stderr


def test_a_second_build_is_a_hit_and_the_same_bytes(build, tiny, tmp_path):
    first = build(tiny, "--variant", VARIANT)[0]
    content = (tmp_path / "dist" / WHEEL).read_bytes()
    second = build(tiny, "--variant", VARIANT)[0]
    assert (second["status"], second["reason"]) == ("hit", "nothing changed")
    assert first["sha256"] == second["sha256"]
    again = build(tiny, "--variant", VARIANT, "--rebuild")[0]
    assert again["status"] == "built"
    assert (tmp_path / "dist" / WHEEL).read_bytes() == content


def test_a_header_that_only_a_header_includes_changes_the_key(builder, tiny):
    builder("build", tiny, "--variant", VARIANT, check=0)
    (tiny / "csrc/factor.h").write_text("#pragma once\n\nconstexpr float FACTOR = 3.0f;\n")
    plan = json.loads(builder("why", tiny, "--variant", VARIANT, "--json", check=0).stdout)[0]
    assert "project: csrc/factor.h" in [change["field"] for change in plan["changes"]]


def test_touching_and_moving_the_tree_changes_nothing(build, builder, tiny, tmp_path):
    builder("build", tiny, "--variant", VARIANT, check=0)
    moved = tmp_path / "a folder with a space" / "tiny"
    moved.parent.mkdir()
    tiny.rename(moved)
    for path in moved.rglob("*"):
        os.utime(path, (1, 1))
    (moved / "NOTES.md").write_text("not part of the kernel")
    assert build(moved, "--variant", VARIANT)[0]["status"] == "hit"


def test_a_compile_error_comes_first_and_leaves_nothing(builder, tiny, tmp_path):
    source = tiny / "csrc/twice.cpp"
    source.write_text(source.read_text().replace("FACTOR * input[i]", "MISSING * input[i]"))
    done = builder("build", tiny, "--variant", VARIANT, check=4)
    error = done.stderr[done.stderr.index("error: ") :].splitlines()
    assert error[0] == f"error: {VARIANT}: the build failed"
    assert "twice.cpp" in error[1]
    assert "MISSING" in error[1]
    assert "the whole log:" in done.stderr
    assert left_in(tmp_path / "dist") == []


def test_an_op_without_registration_fails_the_load_test(builder, tiny, tmp_path):
    binding = tiny / "torch-ext/torch_binding.cpp"
    binding.write_text("\n".join(line for line in binding.read_text().splitlines() if "IMPL_EXPAND" not in line))
    done = builder("build", tiny, "--variant", VARIANT, check=5)
    assert "no op of tiny has a kernel for CPU" in done.stderr
    assert left_in(tmp_path / "dist") == []


def test_no_compiler_is_said_with_the_remedy(builder, tiny, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    done = builder("build", tiny, "--variant", VARIANT, env={"PATH": str(tools)}, check=4)
    assert "no C++ compiler" in done.stderr
    assert "apt-get install g++" in done.stderr


def test_a_named_compiler_that_is_not_there_is_said(builder, tiny):
    done = builder("build", tiny, "--variant", VARIANT, env={"CXX": "no-such-compiler"}, check=4)
    assert "CXX names 'no-such-compiler'" in done.stderr


def test_a_cold_store_without_network_says_what_is_missing(builder, tiny, tmp_path):
    nowhere = "http://127.0.0.1:9/simple"
    env = {
        "BUILDER_STORE": str(tmp_path / "cold"),
        "PIP_FIND_LINKS": str(tmp_path),
        "PIP_INDEX_URL": nowhere,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_EXTRA_INDEX_URL": "",
        "UV_OFFLINE": "1",
    }
    done = builder("build", tiny, "--variant", VARIANT, env=env, check=4)
    assert "PIP_FIND_LINKS" in done.stderr
    assert left_in(tmp_path / "dist") == []
    assert left_in(tmp_path / "cold/environments") == []


def test_ctrl_c_ends_the_compilers_and_leaves_nothing(tiny, tmp_path):
    # A name of its own, for other tests compile beside this one; and constants that take a compiler minutes.
    source = (tiny / "csrc/twice.cpp").rename(tiny / "csrc/twice_slowly.cpp")
    configuration = tiny / "build.toml"
    configuration.write_text(configuration.read_text().replace("csrc/twice.cpp", "csrc/twice_slowly.cpp"))
    source.write_text(source.read_text() + compiling.SLOW_TO_COMPILE)
    marker = "csrc/twice_slowly.cpp"
    options = ["--variant", VARIANT, "--jobs", "1", "--no-isolation", "--report", "report.html"]
    process = subprocess.Popen(
        [sys.executable, "-m", "builder", "build", tiny, *options],
        env={**os.environ, "BUILDER_STORE": str(tmp_path / "store"), "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What a shell starts in the background ignores this signal, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs here
    )
    deadline = time.monotonic() + 120
    while not compiling.compilers_of(marker) and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "interrupted" in stderr
    assert "time limit" not in stderr
    assert "Traceback" not in stderr
    assert not compiling.compilers_of(marker)
    assert left_in(tmp_path / "dist") == []
    assert left_in(tmp_path / "store/scratch") == []
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "This build was stopped before its end." in report
    assert "0 built, 0 from the store, 0 skipped, 1 stopped." in report


def test_cells_that_this_machine_cannot_build_are_said_with_the_reason(builder, tiny):
    done = builder("build", tiny, "--json", check=0)
    by_variant = {result["variant"]: result for result in json.loads(done.stdout)}
    assert by_variant[VARIANT]["status"] in ("built", "hit")
    other = by_variant["torch-stable-abi210-cpu-aarch64-linux"]
    assert other["status"] == "skipped"
    assert "needs a machine of aarch64-linux" in other["reason"]


@pytest.mark.slow
def test_a_damaged_entry_of_the_store_is_built_again_and_reported(build, tiny, store):
    first = build(tiny, "--variant", VARIANT)[0]
    for path in (store / "wheels").glob(f"*/{WHEEL}"):
        path.write_bytes(b"damaged")
    again = build(tiny, "--variant", VARIANT)[0]
    assert again["status"] == "built"
    assert "damaged" in again["reason"]
    assert again["sha256"] == first["sha256"]


@pytest.mark.slow
def test_without_isolation_the_torch_of_the_environment_is_used(build, tiny):
    built = build(tiny, "--variant", VARIANT, "--no-isolation")[0]
    assert built["status"] == "built"


def test_without_isolation_what_configures_is_in_the_key(build, builder, tiny, tmp_path):
    options = ("--variant", VARIANT, "--no-isolation")
    builder("build", tiny, *options, check=0)
    # Another CMake: a module that is found first, as in another environment.
    (tmp_path / "other/cmake-99.0.dist-info").mkdir(parents=True)
    (tmp_path / "other/cmake-99.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: cmake\nVersion: 99.0\n")
    env = {"PYTHONPATH": f"{tmp_path / 'other'}:{ROOT}"}
    plan = build(tiny, *options, "--dry-run", env=env)[0]
    assert plan["action"] == "build"
    assert [change["field"] for change in plan["changes"]] == ["environment: cmake"]


def test_without_isolation_cells_of_another_torch_are_left_out_with_the_reason(builder):
    version = Version(metadata.version("torch"))
    done = builder("build", ROOT / "examples/relu", "--no-isolation", "--dry-run", "--json", check=0)
    reasons = {plan["variant"]: plan["reason"] for plan in json.loads(done.stdout) if plan["action"] == "skip"}
    minor = f"{version.major}{version.minor}"
    for backend in ("cu130", "rocm71", "xpu20260"):
        assert f"has {version}, which is for cpu\n" in reasons[f"torch{minor}-cxx11-{backend}-x86_64-linux"]
    assert f"torch{minor}-cxx11-cpu-x86_64-linux" not in reasons


def test_the_wheel_version_must_be_of_the_kernel(builder, tiny):
    done = builder("build", tiny, "--variant", VARIANT, "--wheel-version", "2.0", check=2)
    assert "does not fit general.version = 1" in done.stderr


@pytest.mark.slow
def test_another_version_and_no_label_are_in_the_name(builder, tiny, tmp_path):
    builder("build", tiny, "--variant", VARIANT, "--wheel-version", "1.4.2", "--no-label", check=0)
    wheel = "tiny-1.4.2-py3-none-manylinux_2_28_x86_64.whl"
    assert left_in(tmp_path / "dist") == [wheel, f"{wheel}.record.json"]


def test_the_output_that_cannot_be_written_is_said(builder, tiny, tmp_path):
    (tmp_path / "file").touch()
    done = builder("build", tiny, "--variant", VARIANT, "--output", tmp_path / "file" / "dist", check=4)
    assert "cannot write" in done.stderr
