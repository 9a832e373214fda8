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
from dataclasses import dataclass
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
from tests.given.files import edit
from tests.given.processes import builder
from tests.wheels import simple

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples/rmsnorm-stable"
TINY = ROOT / "tests/data/kernels/tiny"
CPU, CUDA = "torch-stable-abi210-cpu-x86_64-linux", "torch-stable-abi210-cu130-x86_64-linux"
IMPORTS = ("filelock", "fsspec", "jinja2", "networkx", "numpy", "sympy", "typing-extensions")
TORCHES = ("2.10", "2.11", "2.12", "2.13", "2.14", "2.15")
PYTHONS = ("cp310", "cp311", "cp312", "cp313")
HERE = f"cp3{sys.version_info.minor}"
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


@pytest.fixture(scope="module")
def wheels(store, tmp_path_factory):
    """The example's wheels, by variant; that for CUDA has code for one GPU, as none runs it."""
    root = tmp_path_factory.mktemp("wheels")
    kernel = Path(shutil.copytree(EXAMPLE, root / EXAMPLE.name))
    edit(kernel / "build.toml", 'backend = "cuda"\n', 'backend = "cuda"\ncuda-capabilities = ["9.0"]\n')
    return {variant: build(kernel, variant, store=store, output=root / "dist") for variant in (CPU, CUDA)}


@pytest.fixture(scope="module")
def pythons():
    """The Pythons of this machine among those that wheels of the stable ABI are for."""
    where = indexes.read(os.environ)
    found = {tag: interpreters.find(tag, finders=where) or of_pyenv(tag) for tag in PYTHONS}
    return {tag: path for tag, path in found.items() if path is not None} or {HERE: Path(sys.executable)}


@dataclass(frozen=True, slots=True)
class Site:
    """A folder with a torch and what it imports, for a Python; the loader finds in `libraries` what it needs."""

    path: Path
    python: Path
    libraries: tuple[Path, ...]


@pytest.fixture(scope="module")
def site(request, wheels, pythons, tmp_path_factory):
    """The site of the torch that the test names, with a Python in turn; gone after the last test of that torch."""
    torch = request.param
    tags = [tag for tag in pythons if (torch, tag) != ("2.15", "cp310")]
    if not tags:
        pytest.skip("torch 2.15 is not for Python 3.10")
    python = pythons[tags[(TORCHES.index(torch) + 1) % len(tags)]]
    root = tmp_path_factory.mktemp("site")
    packages = [root / variant for variant in wheels]
    for wheel, package in zip(wheels.values(), packages, strict=True):
        unpack(wheel, package)
    with installed(torch, python, root=root) as folder:
        yield Site(folder, python, stand_ins(folder, *packages, folder=root / "stand-ins"))


@contextlib.contextmanager
def installed(torch, python, *, root):
    """Install a build of torch for CUDA; gone afterwards, it takes a gigabyte."""
    where = indexes.read(os.environ)
    folder = root / "site"
    install = [uv_binary(), "pip", "install", "--quiet", "--only-binary", ":all:", "--python", python]
    install += ["--target", folder, "--cache-dir", root / "uv"]
    # Not the builds for CPU that a find-links folder may have.
    env = {name: value for name, value in where.env.items() if name != "UV_FIND_LINKS"}
    for options in (IMPORTS, ("--no-deps", f"torch=={torch}.*")):
        subprocess.run([*install, *options], env=env, check=True)
    yield folder
    for made in (folder, root / "uv"):
        shutil.rmtree(made)


def of_pyenv(tag):
    """Return a Python that pyenv has and does not put on PATH."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return next(iter(sorted(root.glob(f"versions/{tag[2]}.{tag[3:]}.*/bin/python"))), None)


def stand_ins(site, *packages, folder):
    """Return where the loader finds what this machine has not."""
    lib = site / "torch/lib"
    own = [library for package in packages for library in package.rglob("*.so")]
    libraries = [*(site / "torch").glob("_C.*.so"), *lib.glob("*.so"), *own]
    standin.make(standin.missing(libraries, search=(lib,)), folder, cc=Path(shutil.which("gcc")))
    return (folder, lib)


def load(wheel, cell, site):
    """Put a wheel in place of another of the same name, and load it."""
    package = site.path / wheel.name.replace("-", "_")
    shutil.rmtree(package, ignore_errors=True)
    unpack(wheel, site.path)
    ops = json.loads((package / "metadata.json").read_text())["id"]
    setup = loadtest.Setup(package=package, cell=cell, python=site.python, libraries=site.libraries)
    found = loadtest.load(setup, ops=ops)
    found.require(LoadTestRule.REQUIRE)
    return found


def cell(kernel, variant):
    return cell_in(kernel, sets=("release", "all"), variant=variant)


@pytest.mark.parametrize("site", TORCHES, ids=lambda torch: f"torch {torch}", indirect=True)
def test_a_stable_wheel_imports_registers_and_computes(wheels, site):
    found = load(wheels[CPU], cell(EXAMPLE, CPU), site)
    assert {name.partition("::")[2] for name in found.ops} >= {"rms_norm", "add_rms_norm"}
    assert all("CPU" in keys for keys in found.ops.values())
    path = os.pathsep.join(map(str, site.libraries))
    env = {"PATH": os.defpath, "PYTHONPATH": str(site.path), "LD_LIBRARY_PATH": path}
    done = subprocess.run([site.python, "-c", COMPUTE], env=env, cwd="/", capture_output=True, text=True, check=False)
    known = torch_identity(site.path)
    assert done.stdout.strip() == f"right on {known.version}", done.stderr
    assert known.facts["cuda"]
    assert known.facts["cxx11-abi"] == "1"
    assert known.facts["build-id libtorch_cuda.so"].isalnum()
    found = load(wheels[CUDA], cell(EXAMPLE, CUDA), site)
    assert all("CUDA" in keys for keys in found.ops.values())


@pytest.mark.parametrize("site", ["2.10"], ids=["torch 2.10"], indirect=True)
def test_a_wheel_that_targets_2_11_fails_cleanly_on_2_10(site, store, tmp_path):
    newer = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    edit(newer / "build.toml", 'stable-abi = "2.10"', 'stable-abi = "2.11"')
    # Which types there are is asked of torch, and 2.11 has two more: a symbol each.
    asked = "  (void)input.scalar_type();\n  auto output"
    edit(newer / "torch-ext/torch_binding.cpp", "  auto output", asked)
    variant = CPU.replace("210", "211")
    wheel = build(newer, variant, store=store, output=tmp_path / "dist")
    with pytest.raises(loadtest.LoadError, match="undefined symbol"):
        load(wheel, cell(newer, variant), site)


# What a release of tvm-ffi would compile for the torch that is there is only seen.
ASK = """
import runpy, subprocess, sys
def run(command, **options):
    print(command[command.index("--libname") + 1])
    return subprocess.CompletedProcess(command, 1, b"", b"")
subprocess.run = run
runpy.run_path(sys.argv[1])
"""


def addon(release, site, folder):
    """Return the file that a release of tvm-ffi looks for beside a real torch."""
    env = {
        "PATH": os.defpath,
        "PYTHONPATH": str(site.path),
        "LD_LIBRARY_PATH": os.pathsep.join(map(str, site.libraries)),
        "TVM_FFI_CACHE_DIR": str(folder / "cache"),
        # Nothing of NVIDIA's is asked whether there is a GPU: a library that is only named has no answer.
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [site.python, "-W", "ignore", "-c", ASK, release / "tvm_ffi/_optional_torch_c_dlpack.py"]
    done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def release(version, folder):
    """Fetch a release of tvm-ffi, and unpack it."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    subprocess.run([*command, "-d", folder, f"apache-tvm-ffi=={version}"], check=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        archive.extractall(folder)
    return folder


def test_two_builds_of_torch_2_9_share_an_addon_of_tvm_ffi_before_the_floor_alone(tmp_path):
    versions = ("0.1.12", dependencies.at_least("tvm-ffi"))
    releases = [release(version, tmp_path / str(version)) for version in versions]
    names = {}
    for torch in ("2.9.0", "2.9.1"):
        root, python = tmp_path / torch, Path(sys.executable)
        with installed(torch, python, root=root) as folder:
            site = Site(folder, python, stand_ins(folder, folder=root / "stand-ins"))
            names[torch] = [addon(each, site, root / each.name) for each in releases]
            assert torch_identity(folder).version.startswith(torch)
    assert all(name.startswith("libtorch_c_dlpack_addon_torch29-") for found in names.values() for name in found)
    assert [one == other for one, other in zip(*names.values(), strict=True)] == [True, False]


def classic(folder):
    """Return tiny without a stable ABI."""
    copied = Path(shutil.copytree(TINY, folder / "classic"))
    edit(copied / "build.toml", 'stable-abi = "2.10"\n', "")
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
