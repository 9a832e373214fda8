"""ROCm: torch's own detection, over a CPU torch, and Debian's HIP compiler."""

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from tests.integration import rendered, rocm

pytestmark = [
    pytest.mark.cmake,
    pytest.mark.torch,
    pytest.mark.rocm,
    rendered.needs_torch,
    pytest.mark.skipif(bool(rocm.why_not()), reason=rocm.why_not() or "-"),
]
KERNEL = Path(__file__).parent / "kernels/scale-hip"
DEFINITIONS = ("-DKERNEL_ROCM_ARCHS=gfx90a;gfx1030",)
SETS_ONLY = "set({} TRUE)\n"


def configured(tmp_path, torch, root, *definitions, change=None):
    rendered.write_project(KERNEL, "rocm", tmp_path / "project")
    lists = tmp_path / "project/CMakeLists.txt"
    if change is not None:
        text = lists.read_text()
        assert change[0] in text
        lists.write_text(text.replace(*change))
    env = rendered.environment(ROCM_PATH=root)
    build = tmp_path / "build"
    done = rendered.configure(
        tmp_path / "project", build, f"-DKERNEL_TORCH_DIR={torch}", *DEFINITIONS, *definitions, env=env
    )
    return done, build, env


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return rocm.rocm_root(tmp_path_factory.mktemp("rocm"))


@pytest.fixture
def whole_root(tmp_path):
    """A ROCm with rocThrust's headers."""
    thrust = rocm.thrust(tmp_path / "debian")
    if thrust is None:
        pytest.skip("apt has no rocThrust's headers; BUILDER_TEST_ROCTHRUST names a folder with thrust and rocprim")
    return rocm.rocm_root(tmp_path, thrust)


def torch_with(tmp_path, load_hip=None):
    return rocm.rocm_torch(tmp_path / "torch", rendered.torch_folder(), load_hip=load_hip)


@pytest.mark.parametrize("variable", ["HIP_FOUND", "PYTORCH_FOUND_HIP"])
def test_either_variable_says_that_rocm_was_found(tmp_path, root, variable):
    torch = torch_with(tmp_path, SETS_ONLY.format(variable))
    done, _, _ = configured(tmp_path, torch, root)
    assert done.returncode == 0, done.output


@pytest.mark.parametrize(
    ("condition", "variable"),
    [("HIP_FOUND", "PYTORCH_FOUND_HIP"), ("PYTORCH_FOUND_HIP", "HIP_FOUND")],
)
def test_half_of_the_condition_is_not_enough(tmp_path, root, condition, variable):
    torch = torch_with(tmp_path, SETS_ONLY.format(variable))
    change = ("HIP_FOUND OR PYTORCH_FOUND_HIP)", f"{condition})")
    done, _, _ = configured(tmp_path, torch, root, change=change)
    assert done.returncode != 0
    assert "no ROCm" in done.output


def test_neither_variable_is_an_error_that_says_what_to_do(tmp_path, root):
    torch = torch_with(tmp_path, "")
    done, _, _ = configured(tmp_path, torch, root)
    assert done.returncode != 0
    output = rendered.words(done.output)
    assert "no ROCm: PyTorch in" in output
    assert f"ROCM_PATH, which is '{root}'" in output
    assert "help: install ROCm" in output


def test_the_detection_of_this_torch_is_understood(tmp_path, root):
    done, _, _ = configured(tmp_path, torch_with(tmp_path), root)
    assert done.returncode == 0, done.output
    assert "kernel 'scale': HIP" in done.output
    assert "asked for, and not compiled by HIP" in done.output
    assert "gfx999" in done.output


def test_a_cpu_torch_does_not_look_for_rocm(tmp_path, root):
    done, _, _ = configured(tmp_path, rendered.torch_folder(), root)
    assert done.returncode != 0
    assert "a build of torch for CPU or CUDA does not look for ROCm" in rendered.words(done.output)


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize("release", ["2.12.1", "2.14.0"])
def test_the_detection_of_other_releases_is_understood(tmp_path, root, release):
    """The LoadHIP.cmake of another release, from its wheel, over this torch."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", tmp_path, f"torch=={release}"]
    assert rendered.run(pip).returncode == 0
    (wheel,) = tmp_path.glob("torch-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        load_hip = archive.read("torch/share/cmake/Caffe2/public/LoadHIP.cmake").decode()
    wheel.unlink()
    done, _, _ = configured(tmp_path, torch_with(tmp_path, load_hip), root)
    assert done.returncode == 0, done.output


@pytest.mark.network
def test_a_stable_kernel_compiles_links_loads_and_registers(tmp_path, whole_root):
    done, build, env = configured(tmp_path, torch_with(tmp_path), whole_root)
    assert done.returncode == 0, done.output
    installed = tmp_path / "installed"
    rendered.compile_and_install(build, installed, env=env)

    missing = tmp_path / "missing"  # a CPU torch has no libtorch_hip.so
    missing.mkdir()
    shutil.copy(build / "stand_in/libtorch_hip.so", missing)
    env["LD_LIBRARY_PATH"] = str(missing)
    assert rendered.registered(installed, "scale_hip", "CUDA", env=env) == "['scale']"

    plan = json.loads((build / "kernel-plan.json").read_text())
    assert plan["archs"] == ["gfx90a", "gfx1030"]
    assert plan["components"][0]["lost"] == ["gfx999"]
    metadata = json.loads((installed / "scale_hip/metadata.json").read_text())
    assert metadata["backend"] == {"type": "rocm", "archs": ["gfx90a", "gfx1030"]}
    (library,) = installed.glob("scale_hip/*.so")
    content = library.read_bytes()
    for arch in ("gfx90a", "gfx1030"):
        assert f"amdgcn-amd-amdhsa--{arch}".encode() in content
    assert str(tmp_path).encode() not in content


def test_sources_are_translated_in_the_build_tree_alone(tmp_path, root):
    done, build, _ = configured(tmp_path, torch_with(tmp_path), root)
    assert done.returncode == 0, done.output
    before = {path.relative_to(KERNEL) for path in KERNEL.rglob("*") if path.is_file()}
    after = {path.relative_to(tmp_path / "project") for path in (tmp_path / "project").rglob("*")}
    assert before - {Path("build.toml")} <= after
    assert not [path for path in after if path.suffix == ".hip"]
    (translated,) = (build / "hipified").rglob("*.hip")
    text = translated.read_text()
    assert "hip/hip_runtime.h" in text
    headers = [path.read_text() for path in (build / "hipified").rglob("block*.cuh")]
    assert any("hipGetLastError" in header for header in headers)
