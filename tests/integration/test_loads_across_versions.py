"""The wheels of the examples on real builds of torch that they were not built with, each in a process of its own.

A build of torch for CUDA is imported without a GPU or a library of NVIDIA: what it links to is only named.
That shows that a kernel for CUDA loads and registers, not that it computes.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from builder import loadtest
from builder.config import LoadTestRule, dependencies
from builder.environment import indexes, interpreters
from builder.environment.indexes import uv_binary
from builder.make import standin
from builder.make.framework import torch_identity
from builder.wheel.archive import Wheel, unpack
from tests.given.cells import cell_in
from tests.given.processes import builder
from tests.wheels import simple

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples/rmsnorm-stable"
TINY = ROOT / "tests/data/kernels/tiny"
CPU, CUDA = "torch-stable-abi210-cpu-x86_64-linux", "torch-stable-abi210-cu130-x86_64-linux"
IMPORTS = ("filelock", "fsspec", "jinja2", "networkx", "numpy", "sympy", "typing-extensions")
LEFT_OUT = ("torch/include/", "torch/share/", "torch/test/")
HERE = f"cp3{sys.version_info.minor}"
BUILDS = (
    *((torch, HERE) for torch in ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")),
    *(("2.13", python) for python in ("cp310", "cp311", "cp312", "cp313") if python != HERE),
)
COMPUTE = """
import torch, rmsnorm_stable
x, w = torch.randn(7, 33), torch.randn(33)
expected = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w
torch.testing.assert_close(rmsnorm_stable.rms_norm(x, w, 1e-6), expected)
print("right on", torch.__version__)
"""

pytestmark = [
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.cmake,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="builds of x86_64-linux"),
]


def build(directory, variant, *, store, output):
    options = ("--variant", variant, "--output", output, "--json")
    done = builder("build", directory, *options, store=store, check=0)
    return Wheel.read(Path(json.loads(done.stdout)[0]["wheel"]))


@pytest.fixture(scope="session")
def wheels(store, tmp_path_factory):
    """The example's wheels, by variant."""
    output = tmp_path_factory.mktemp("dist")
    return {variant: build(EXAMPLE, variant, store=store, output=output) for variant in (CPU, CUDA)}


@pytest.fixture
def site(request, tmp_path):
    """A folder with the torch and for the Python that the test names; gone afterwards, it takes a gigabyte."""
    with installed(*request.param, tmp_path=tmp_path) as found:
        yield found


@contextlib.contextmanager
def installed(torch, tag, *, tmp_path):
    where = indexes.read(os.environ)
    python = Path(sys.executable) if tag == HERE else interpreters.find(tag, finders=where) or of_pyenv(tag)
    if python is None:
        pytest.skip(f"no Python {tag} on this machine")
    if (torch, tag) == ("2.15", "cp310"):
        pytest.skip("torch 2.15 is not for Python 3.10")
    folder = tmp_path / "site"
    install = [uv_binary(), "pip", "install", "--quiet", "--only-binary", ":all:", "--python", python]
    subprocess.run([*install, "--target", folder, *IMPORTS], env={**where.env, "UV_LINK_MODE": "copy"}, check=True)
    scratch = tmp_path / "wheel"
    (scratch / "none").mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    version = f"{tag[2]}.{tag[3:]}"
    # The builds for CPU that a find-links folder may have are not wanted here.
    env = {**os.environ, "PIP_FIND_LINKS": str(scratch / "none")}
    command += ["--python-version", version, "--dest", scratch, f"torch=={torch}.*"]
    subprocess.run(command, env=env, check=True)
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if not name.startswith(LEFT_OUT)])
    wheel.unlink()
    yield folder, python
    for made in (folder, tmp_path / "wheel"):
        shutil.rmtree(made)


def of_pyenv(tag):
    """Return a Python that pyenv has and does not put on PATH."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return next(iter(sorted(root.glob(f"versions/{tag[2]}.{tag[3:]}.*/bin/python"))), None)


def stand_ins(site, package, folder):
    """Return where the loader finds what this machine has not."""
    lib = site / "torch/lib"
    libraries = [*(site / "torch").glob("_C.*.so"), *lib.glob("*.so"), *package.rglob("*.so")]
    standin.make(standin.missing(libraries, search=(lib,)), folder, cc=Path(shutil.which("gcc")))
    return (folder, lib)


def install(wheel, site):
    """Put a wheel in place of another of the same name."""
    shutil.rmtree(site / wheel.name.replace("-", "_"), ignore_errors=True)
    unpack(wheel, site)
    return site / wheel.name.replace("-", "_")


def load(wheel, cell, *, site, python, folder):
    package = install(wheel, site)
    ops = json.loads((package / "metadata.json").read_text())["id"]
    libraries = stand_ins(site, package, folder)
    found = loadtest.load(loadtest.Setup(package=package, cell=cell, python=python, libraries=libraries), ops=ops)
    found.require(LoadTestRule.REQUIRE)
    return found, libraries


@pytest.mark.parametrize("site", BUILDS, ids=lambda build: f"torch {build[0]} {build[1]}", indirect=True)
def test_a_stable_wheel_imports_registers_and_computes(wheels, site, tmp_path):
    folder, python = site
    found, libraries = load(
        wheels[CPU],
        cell_in(EXAMPLE, sets=("release", "all"), variant=CPU),
        site=folder,
        python=python,
        folder=tmp_path / "stand-ins",
    )
    assert {name.partition("::")[2] for name in found.ops} >= {"rms_norm", "add_rms_norm"}
    assert all("CPU" in keys for keys in found.ops.values())
    env = {"PATH": os.defpath, "PYTHONPATH": str(folder), "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries))}
    done = subprocess.run([python, "-c", COMPUTE], env=env, cwd="/", capture_output=True, text=True, check=False)
    known = torch_identity(folder)
    assert done.stdout.strip() == f"right on {known.version}", done.stderr
    assert known.facts["cuda"]
    assert known.facts["cxx11-abi"] == "1"
    assert known.facts["build-id libtorch_cuda.so"].isalnum()
    found, _ = load(
        wheels[CUDA],
        cell_in(EXAMPLE, sets=("release", "all"), variant=CUDA),
        site=folder,
        python=python,
        folder=tmp_path / "more",
    )
    assert all("CUDA" in keys for keys in found.ops.values())


@pytest.mark.parametrize("site", [("2.10", HERE)], ids=["torch 2.10"], indirect=True)
def test_a_wheel_that_targets_2_11_fails_cleanly_on_2_10(site, store, tmp_path):
    folder, python = site
    newer = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    config = (newer / "build.toml").read_text()
    (newer / "build.toml").write_text(config.replace('stable-abi = "2.10"', 'stable-abi = "2.11"'))
    binding = newer / "torch-ext/torch_binding.cpp"
    # Which types there are is asked of torch, and 2.11 has two more: a symbol each.
    asked = "  (void)input.scalar_type();\n  auto output"
    binding.write_text(binding.read_text().replace("  auto output", asked))
    variant = CPU.replace("210", "211")
    wheel = build(newer, variant, store=store, output=tmp_path / "dist")
    with pytest.raises(loadtest.LoadError, match="undefined symbol"):
        load(
            wheel,
            cell_in(newer, sets=("release", "all"), variant=variant),
            site=folder,
            python=python,
            folder=tmp_path / "stand-ins",
        )


# What a release of tvm-ffi would compile for the torch that is there is only seen.
ASK = """
import runpy, subprocess, sys
def run(command, **options):
    print(command[command.index("--libname") + 1])
    return subprocess.CompletedProcess(command, 1, b"", b"")
subprocess.run = run
runpy.run_path(sys.argv[1])
"""


def addon(release, site, *, python, folder):
    """Return the file that a release of tvm-ffi looks for beside a real torch."""
    libraries = stand_ins(site, folder / "no package", folder / "stand-ins")
    env = {
        "PATH": os.defpath,
        "PYTHONPATH": str(site),
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
        "TVM_FFI_CACHE_DIR": str(folder / "cache"),
        # Nothing of NVIDIA's is asked whether there is a GPU: a library that is only named has no answer.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [python, "-W", "ignore", "-c", ASK, release / "tvm_ffi/_optional_torch_c_dlpack.py"]
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(("version", "shared"), [("0.1.12", True), (dependencies.at_least("tvm-ffi"), False)])
def test_two_builds_of_torch_2_9_share_an_addon_of_tvm_ffi_before_the_floor_alone(version, shared, tmp_path):
    release = tmp_path / "tvm-ffi"
    release.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", release]
    subprocess.run([*command, f"apache-tvm-ffi=={version}"], check=True)
    with zipfile.ZipFile(next(release.glob("*.whl"))) as archive:
        archive.extractall(release)
    names = []
    for torch in ("2.9.0", "2.9.1"):
        with installed(torch, HERE, tmp_path=tmp_path / torch) as (folder, python):
            names.append(addon(release, folder, python=python, folder=tmp_path / torch))
            assert torch_identity(folder).version.startswith(torch)
    assert all(name.startswith("libtorch_c_dlpack_addon_torch29-") for name in names)
    assert (names[0] == names[1]) is shared


def classic(folder):
    """Return tiny without a stable ABI."""
    copied = Path(shutil.copytree(TINY, folder / "classic"))
    config = (copied / "build.toml").read_text()
    (copied / "build.toml").write_text(config.replace('stable-abi = "2.10"\n', ""))
    return copied


def resolve(wheel, *versions, tmp_path):
    folder = tmp_path / "-".join(versions)
    for version in versions:
        simple(folder, "torch", version)  # a resolver reads no more than the name
    # Nothing of the environment counts: what is installed there would do as well.
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--ignore-installed"]
    env = {**os.environ, "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run([*command, wheel.path], env=env, capture_output=True, text=True, check=False)


def test_pip_refuses_a_classic_wheel_for_another_torch(store, tmp_path):
    wheel = build(classic(tmp_path), "torch213-cxx11-cpu-x86_64-linux", store=store, output=tmp_path / "dist")
    refused = resolve(wheel, "2.12.1", "2.14.0", tmp_path=tmp_path)
    assert refused.returncode != 0
    assert "torch==2.13.*" in refused.stderr
    taken = resolve(wheel, "2.12.1", "2.13.0", "2.14.0", tmp_path=tmp_path)
    assert "torch-2.13.0" in taken.stdout, taken.stderr


def test_pip_takes_the_newest_torch_for_a_stable_wheel_and_none_below_its_target(store, tmp_path):
    wheel = build(TINY, CPU, store=store, output=tmp_path / "dist")
    assert resolve(wheel, "2.9.1", tmp_path=tmp_path).returncode != 0
    assert "torch-2.15.0" in resolve(wheel, "2.10.0", "2.15.0", tmp_path=tmp_path).stdout
