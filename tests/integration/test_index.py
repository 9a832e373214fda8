"""pip and uv install the right wheel from a local server that has the wrong ones too."""

import contextlib
import http.server
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from builder.cli import run
from builder.matrix.variant import Variant
from tests.given.servers import serving_folder
from tests.wheels import make

RELU = Path(__file__).parents[2] / "examples" / "relu"
WRONG = [
    "torch212-cxx11-cpu-x86_64-linux",
    "torch213-cxx11-cpu-aarch64-linux",
    "torch213-cxx11-cu130-x86_64-linux",
    "torch213-cxx11-xpu20260-x86_64-linux",
    "torch214-cxx11-cpu-x86_64-linux",
    "torch213-metal-aarch64-darwin",
]
RIGHT = "torch213-cxx11-cpu-x86_64-linux"
CALL = """
import torch, relu
x = torch.randn(9)
assert torch.equal(relu.relu(x), torch.relu(x))
print(relu.__file__)
"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    requests: list[str]

    def log_message(self, *_arguments):
        self.requests.append(self.path)


@contextlib.contextmanager
def served(folder):
    """Serve a folder; yields its address and the list of what was asked for."""
    handler = type("Handler", (_Handler,), {"requests": []})
    with serving_folder(folder, handler) as address:
        yield address, handler.requests


def publish(folder, wheels):
    dist = folder / "dist"
    dist.mkdir(exist_ok=True)
    for name in wheels:
        variant = Variant.parse(name)
        make(dist, "relu", variant, requires=[f"torch=={variant.version}.*"], content=f"variant = {name!r}\n")
    assert run(["index", str(dist), "--output", str(folder / "site")]) == 0
    return folder / "site"


def environment(folder, *, pip):
    """Make an environment in which an installer sees torch 2.13.0+cpu, of which only the name is there."""
    venv.create(folder, with_pip=pip)
    (site,) = folder.glob("lib/python*/site-packages")
    info = site / "torch-2.13.0+cpu.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0+cpu\n")
    (info / "RECORD").write_text("torch-2.13.0+cpu.dist-info/METADATA,,\n")
    (info / "INSTALLER").write_text("pip\n")
    return folder / "bin" / "python"


def clean_environ(folder):
    """Return the environment variables of a user who has no settings for installers."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PYTHON"))}
    return kept | {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "HOME": str(folder), "UV_CACHE_DIR": str(folder)}


def installed(python, folder):
    show = [python, "-c", "import relu; print(relu.variant)"]
    return subprocess.run(show, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


def pip(python):
    return [python, "-m", "pip", "install", "--no-cache-dir"]


def uv(python):
    return [sys.executable, "-m", "uv", "pip", "install", "--python", python]


@pytest.mark.slow
@pytest.mark.parametrize("installer", [pip, uv])
@pytest.mark.parametrize("how", ["an index of its own", "the whole version"])
def test_an_installer_takes_the_right_wheel_and_downloads_no_other(installer, how, tmp_path):
    site = publish(tmp_path, [*WRONG, RIGHT])
    python = environment(tmp_path / "venv", pip=installer is pip)
    with served(site) as (address, requests):
        if how == "an index of its own":
            arguments = ["--index-url", f"{address}/for/torch213-cpu/simple/", "relu"]
        else:
            arguments = ["--index-url", f"{address}/simple/", "relu==1.0.0+torch213.cxx11.cpu"]
        command = [*installer(python), *arguments]
        done = subprocess.run(command, env=clean_environ(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert installed(python, tmp_path) == RIGHT
    files = [path for path in requests if "/files/" in path]
    assert [path for path in files if path.endswith(".metadata")], requests
    assert {path for path in files if path.endswith(".whl")} == {
        "/files/relu-1.0.0%2Btorch213.cxx11.cpu-cp39-abi3-manylinux_2_28_x86_64.whl"
    }


@pytest.mark.slow
@pytest.mark.parametrize("installer", [pip, uv])
def test_where_no_wheel_fits_nothing_is_installed(installer, tmp_path):
    site = publish(tmp_path, WRONG)
    python = environment(tmp_path / "venv", pip=installer is pip)
    with served(site) as (address, _):
        command = [*installer(python), "--index-url", f"{address}/for/torch213-cpu/simple/", "relu"]
        done = subprocess.run(command, env=clean_environ(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert not list((tmp_path / "venv").glob("lib/python*/site-packages/relu"))


@pytest.mark.slow
@pytest.mark.parametrize("installer", [pip, uv])
def test_a_wheel_that_was_changed_on_the_server_is_refused(installer, tmp_path):
    site = publish(tmp_path, [RIGHT])
    (wheel,) = (site / "files").glob("*.whl")
    make(wheel.parent, "relu", Variant.parse(RIGHT), requires=["torch==2.13.*"], content="variant = 'evil'\n")
    python = environment(tmp_path / "venv", pip=installer is pip)
    with served(site) as (address, _):
        command = [*installer(python), "--index-url", f"{address}/for/torch213-cpu/simple/", "relu"]
        done = subprocess.run(command, env=clean_environ(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "hash" in done.stderr.lower()


@pytest.mark.torch
@pytest.mark.cmake
@pytest.mark.slow
def test_the_real_kernel_is_installed_for_the_installed_torch_and_called(store, tmp_path):
    dist = tmp_path / "dist"
    build = ["build", RELU, "--backend", "cpu", "--no-isolation", "--output", dist, "--store", store]
    built = subprocess.run([sys.executable, "-m", "builder", *build], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    site = publish(tmp_path, WRONG)
    python = tmp_path / "venv" / "bin" / "python"
    venv.create(tmp_path / "venv")
    (own,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    import torch  # noqa: PLC0415  only this test needs it

    # pip is beside torch: to bring one takes seconds.
    (own / "torch.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
    with served(site) as (address, _):
        command = [*pip(python), "--index-url", f"{address}/for/torch213-cpu/simple/", "relu"]
        done = subprocess.run(command, env=clean_environ(tmp_path), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    call = (
        "import torch, relu; x = torch.randn(9); assert torch.equal(relu.relu(x), torch.relu(x)); print(relu.__file__)"
    )
    called = subprocess.run([python, "-c", call], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert called.returncode == 0, called.stderr
    assert str(own) in called.stdout
