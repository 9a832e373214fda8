"""`builder build` on small real kernels, with real tools, as a user runs it."""

import json
import os
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.version import Version

from tests.given import kernels, processes
from tests.given.files import edit, names
from tests.given.kernels import PLAIN_CELL, TINY_CELL, linux
from tests.integration import compiling
from tests.paths import ROOT

WHEEL = "plain-1.0.0+ctypes.cpu-py3-none-manylinux_2_28_x86_64.whl"
CALLS = {
    "plain": "import plain; assert plain.answer() == 42; print('right')",
    "tiny": "import torch, tiny; assert tiny.twice(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]; print('right')",
}

pytestmark = [
    pytest.mark.cmake,
    linux,
]


@pytest.mark.parametrize(
    ("kernel", "cell", "label", "keys"),
    [
        pytest.param(kernels.PLAIN, PLAIN_CELL, "ctypes.cpu", "C", id="plain"),
        pytest.param(
            *(kernels.TINY, TINY_CELL, "torch.stable210.cpu", "CPU"),
            id="torch",
            marks=[pytest.mark.slow, pytest.mark.torch],
        ),
    ],
)
def test_a_kernel_becomes_a_wheel_that_is_called(build, tmp_path, kernel, cell, label, keys):  # noqa: PLR0917
    built = build(kernel, "--variant", cell)[0]
    assert Path(built["wheel"]).name == f"{kernel.name}-1.0.0+{label}-py3-none-manylinux_2_28_x86_64.whl"
    assert {key for found in built["report"]["ops"].values() for key in found} == {keys}
    zipfile.ZipFile(tmp_path / built["wheel"]).extractall(tmp_path / "site")
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    assert processes.output(sys.executable, "-c", CALLS[kernel.name], env=env) == "right\n"


def test_a_second_build_is_a_hit_and_the_same_bytes(build, plain, tmp_path):
    first = build(plain, "--variant", PLAIN_CELL)[0]
    content = (tmp_path / "dist" / WHEEL).read_bytes()
    second = build(plain, "--variant", PLAIN_CELL)[0]
    assert (second["status"], second["reason"]) == ("hit", "nothing changed")
    assert first["sha256"] == second["sha256"]
    again = build(plain, "--variant", PLAIN_CELL, "--rebuild")[0]
    assert again["status"] == "built"
    assert (tmp_path / "dist" / WHEEL).read_bytes() == content


@pytest.mark.slow
def test_a_header_that_only_a_header_includes_changes_the_key(builder, plain):
    edit(plain / "csrc/scale.cpp", 'extern "C"', '#include "outer.h"\nextern "C"')
    (plain / "csrc/outer.h").write_text('#include "inner.h"\n')
    (plain / "csrc/inner.h").write_text("#pragma once\n")
    builder("build", plain, "--variant", PLAIN_CELL, "--load-test", "skip", check=0)
    (plain / "csrc/inner.h").write_text("#pragma once\n\nconstexpr float FACTOR = 3.0f;\n")
    plan = json.loads(builder("why", plain, "--variant", PLAIN_CELL, "--json", check=0).stdout)[0]
    assert "project: csrc/inner.h" in [change["field"] for change in plan["changes"]]


def test_touching_and_moving_the_tree_changes_nothing(build, builder, plain, tmp_path):
    builder("build", plain, "--variant", PLAIN_CELL, check=0)
    moved = tmp_path / "a folder with a space" / "plain"
    moved.parent.mkdir()
    plain.rename(moved)
    for path in moved.rglob("*"):
        os.utime(path, (1, 1))
    (moved / "NOTES.md").write_text("not part of the kernel")
    assert build(moved, "--variant", PLAIN_CELL)[0]["status"] == "hit"


def test_a_compile_error_comes_first_and_leaves_nothing(builder, plain, tmp_path):
    edit(plain / "csrc/scale.cpp", "* factor", "* MISSING")
    done = builder("build", plain, "--variant", PLAIN_CELL, check=4)
    error = done.stderr[done.stderr.index("error: ") :].splitlines()
    assert error[0] == f"error: {PLAIN_CELL}: the build failed"
    assert "scale.cpp" in error[1]
    assert "MISSING" in error[1]
    assert "the whole log:" in done.stderr
    assert not names(tmp_path / "dist")


@pytest.mark.slow
@pytest.mark.torch
def test_an_op_without_registration_fails_the_load_test(builder, tiny, tmp_path):
    binding = tiny / "torch-ext/torch_binding.cpp"
    binding.write_text("\n".join(line for line in binding.read_text().splitlines() if "IMPL_EXPAND" not in line))
    done = builder("build", tiny, "--variant", TINY_CELL, "--no-isolation", check=5)
    assert "no op of tiny has a kernel for CPU" in done.stderr
    assert not names(tmp_path / "dist")


def test_no_compiler_is_said_with_the_remedy(builder, plain, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    done = builder("build", plain, "--variant", PLAIN_CELL, env={"PATH": str(tools)}, check=4)
    assert "no C++ compiler" in done.stderr
    assert "apt-get install g++" in done.stderr


def test_a_named_compiler_that_is_not_there_is_said(builder, plain):
    done = builder("build", plain, "--variant", PLAIN_CELL, env={"CXX": "no-such-compiler"}, check=4)
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
    done = builder("build", tiny, "--variant", TINY_CELL, env=env, check=4)
    assert "PIP_FIND_LINKS" in done.stderr
    assert not names(tmp_path / "dist")
    assert not names(tmp_path / "cold/environments")


def test_ctrl_c_ends_the_compilers_and_leaves_nothing(plain, tmp_path):
    # A name of its own, for other tests compile beside this one; and constants that take a compiler minutes.
    source = (plain / "csrc/scale.cpp").rename(plain / "csrc/scale_slowly.cpp")
    edit(plain / "build.toml", "csrc/scale.cpp", "csrc/scale_slowly.cpp")
    source.write_text(source.read_text() + compiling.SLOW_TO_COMPILE)
    options = ("--variant", PLAIN_CELL, "--jobs", "1", "--no-isolation", "--report", "report.html")
    said = compiling.interrupted("csrc/scale_slowly.cpp", "build", plain, *options, folder=tmp_path)
    assert "interrupted" in said
    assert "time limit" not in said
    assert "Traceback" not in said
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "This build was stopped before its end." in report
    assert "0 built, 0 from the store, 0 skipped, 1 stopped." in report


def test_cells_that_this_machine_cannot_build_are_said_with_the_reason(builder, plain):
    done = builder("build", plain, "--backend", "cpu", "--json", check=0)
    by_variant = {result["variant"]: result for result in json.loads(done.stdout)}
    assert by_variant[PLAIN_CELL]["status"] in ("built", "hit")
    other = by_variant["ctypes-cpu-aarch64-linux"]
    assert other["status"] == "skipped"
    assert "needs a machine of aarch64-linux" in other["reason"]


@pytest.mark.slow
def test_a_damaged_entry_of_the_store_is_built_again_and_reported(build, plain, store):
    first = build(plain, "--variant", PLAIN_CELL)[0]
    for path in (store / "wheels").glob(f"*/{WHEEL}"):
        path.write_bytes(b"damaged")
    again = build(plain, "--variant", PLAIN_CELL)[0]
    assert again["status"] == "built"
    assert "damaged" in again["reason"]
    assert again["sha256"] == first["sha256"]


@pytest.mark.slow
@pytest.mark.torch
def test_without_isolation_the_torch_of_the_environment_is_used(build, tiny):
    built = build(tiny, "--variant", TINY_CELL, "--no-isolation")[0]
    assert built["status"] == "built"


@pytest.mark.slow
def test_without_isolation_what_configures_is_in_the_key(build, builder, plain, tmp_path):
    options = ("--variant", PLAIN_CELL, "--no-isolation")
    builder("build", plain, *options, check=0)
    # Another CMake: a module that is found first, as in another environment.
    (tmp_path / "other/cmake-99.0.dist-info").mkdir(parents=True)
    (tmp_path / "other/cmake-99.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: cmake\nVersion: 99.0\n")
    env = {"PYTHONPATH": f"{tmp_path / 'other'}:{ROOT}"}
    plan = build(plain, *options, "--dry-run", env=env)[0]
    assert plan["action"] == "build"
    assert [change["field"] for change in plan["changes"]] == ["environment: cmake"]


@pytest.mark.torch
def test_without_isolation_cells_of_another_torch_are_left_out_with_the_reason(builder):
    version = Version(metadata.version("torch"))
    done = builder("build", ROOT / "examples/relu", "--no-isolation", "--dry-run", "--json", check=0)
    reasons = {plan["variant"]: plan["reason"] for plan in json.loads(done.stdout) if plan["action"] == "skip"}
    minor = f"{version.major}{version.minor}"
    for backend in ("cu130", "rocm71", "xpu20260"):
        assert f"has {version}, which is for cpu\n" in reasons[f"torch{minor}-cxx11-{backend}-x86_64-linux"]
    assert f"torch{minor}-cxx11-cpu-x86_64-linux" not in reasons


def test_the_wheel_version_must_be_of_the_kernel(builder, plain):
    done = builder("build", plain, "--variant", PLAIN_CELL, "--wheel-version", "2.0", check=2)
    assert "does not fit general.version = 1" in done.stderr


@pytest.mark.slow
def test_another_version_and_no_label_are_in_the_name(builder, plain, tmp_path):
    builder("build", plain, "--variant", PLAIN_CELL, "--wheel-version", "1.4.2", "--no-label", check=0)
    wheel = "plain-1.4.2-py3-none-manylinux_2_28_x86_64.whl"
    assert names(tmp_path / "dist") == [wheel, f"{wheel}.record.json"]


def test_the_output_that_cannot_be_written_is_said(builder, plain, tmp_path):
    (tmp_path / "file").touch()
    done = builder("build", plain, "--variant", PLAIN_CELL, "--output", tmp_path / "file" / "dist", check=4)
    assert "cannot write" in done.stderr
