"""The identity that is read from files is the one that torch and tvm-ffi themselves say."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from builder.make.framework import python_of_torch, torch_identity, tvm_ffi_identity

ASK = """
import json, torch
print(json.dumps({
    "version": str(torch.__version__), "git_version": torch.version.git_version, "cuda": torch.version.cuda,
    "hip": torch.version.hip, "cxx11-abi": str(int(torch.compiled_with_cxx11_abi())),
}))
"""


def where(name):
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        pytest.skip(f"no {name} beside the tests")
    return Path(spec.origin).parent.parent


@pytest.mark.torch
def test_torch_is_what_it_says_it_is():
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    said = {name: value for name, value in json.loads(done.stdout).items() if value is not None}
    found = torch_identity(where("torch"))
    assert {"version": found.version, **{name: found.facts.get(name) for name in said if name != "version"}} == said
    assert found.facts["platform"] == os.uname().machine
    assert python_of_torch(where("torch")).startswith(f"cpython-3{sys.version_info.minor}-")


@pytest.mark.torch
def test_the_same_torch_at_another_path_is_the_same(tmp_path):
    site = where("torch")
    wanted = [site / "torch/version.py", *(site / "torch").glob("_C.*"), *(site / "torch/lib").glob("lib*.so*")]
    for path in wanted:
        if path.is_file():
            target = tmp_path / path.relative_to(site)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(path)
    assert torch_identity(tmp_path) == torch_identity(site)


@pytest.mark.torch
def test_another_build_id_of_one_library_makes_another(tmp_path):
    site = where("torch")
    (tmp_path / "torch/lib").mkdir(parents=True)
    shutil.copy(site / "torch/version.py", tmp_path / "torch")
    for name in ("libc10.so", "libtorch.so"):
        shutil.copy(site / "torch/lib" / name, tmp_path / "torch/lib")
    before = torch_identity(tmp_path)
    library = tmp_path / "torch/lib/libc10.so"
    content = bytearray(library.read_bytes())
    at = content.index(bytes.fromhex(before.facts["build-id libc10.so"]))
    content[at] ^= 1
    library.write_bytes(content)
    assert torch_identity(tmp_path) != before


def test_tvm_ffi_is_the_exact_version_that_is_installed():
    site = where("tvm_ffi")
    done = subprocess.run(
        [sys.executable, "-c", "from importlib.metadata import version; print(version('apache-tvm-ffi'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = tvm_ffi_identity(site)
    assert found.version == done.stdout.strip()
    assert any(name.startswith("build-id ") for name in found.facts)
