"""Which addon for torch a release of tvm-ffi would take from its cache, asked of the release itself."""

import json
import os
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from builder.config import dependencies

pytestmark = [pytest.mark.network, pytest.mark.slow]

# The loader of the release is run, with a torch that says to be a certain build; what it would compile is seen.
ASK = """
import json, runpy, subprocess, sys, types
loader, builds = sys.argv[1], json.loads(sys.argv[2])
names = []
def run(command, **options):
    names.append(command[command.index("--libname") + 1])
    return subprocess.CompletedProcess(command, 1, b"", b"")
subprocess.run = run
for version, cuda, abi in builds:
    torch = types.ModuleType("torch")
    torch.__version__ = version
    torch.Tensor = type("Tensor", (), {})
    torch.compiled_with_cxx11_abi = lambda abi=abi: abi
    stream = type("Stream", (), {"__cuda_stream__": None})
    torch.cuda = types.SimpleNamespace(is_available=lambda cuda=cuda: cuda is not None, Stream=stream)
    torch.version = types.ModuleType("torch.version")
    torch.version.cuda, torch.version.hip = cuda, None
    sys.modules.update({"torch": torch, "torch.version": torch.version})
    runpy.run_path(loader)  # importing it looks for the addon
print(json.dumps(names))
"""
BUILDS = (
    ("2.8.0+cu126", "12.6", True),
    ("2.8.0+cu128", "12.8", True),
    ("2.8.1+cu128", "12.8", True),
    ("2.8.0+cu126", "12.6", False),
)
"""Builds that share 2.8 and a device, and no binary interface."""
FLOOR = dependencies.at_least("tvm-ffi")
LAST_BEFORE = "0.1.12"


def names(version, folder):
    """Return the addon that a release asks for, for each build."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", folder]
    subprocess.run([*command, f"apache-tvm-ffi=={version}"], check=True)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder)
    command = [sys.executable, "-W", "ignore", "-c", ASK, str(folder / LOADER), json.dumps(BUILDS)]
    env = {**os.environ, "TVM_FFI_CACHE_DIR": str(folder / "cache")}
    return json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)


LOADER = "tvm_ffi/_optional_torch_c_dlpack.py"


def test_before_the_floor_builds_that_share_a_minor_version_share_an_addon(tmp_path):
    assert len(set(names(LAST_BEFORE, tmp_path))) == 1


def test_from_the_floor_on_every_build_has_its_own(tmp_path):
    assert len(set(names(FLOOR, tmp_path))) == len(BUILDS)


def test_the_one_installed_here_has_its_own_too(tmp_path):
    spec = find_spec("tvm_ffi")
    if spec is None or spec.origin is None:
        pytest.skip("no tvm-ffi beside the tests")
    loader = Path(spec.origin).parent.parent / LOADER
    command = [sys.executable, "-W", "ignore", "-c", ASK, str(loader), json.dumps(BUILDS)]
    env = {**os.environ, "TVM_FFI_CACHE_DIR": str(tmp_path)}
    asked = json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    assert len(set(asked)) == len(BUILDS)
