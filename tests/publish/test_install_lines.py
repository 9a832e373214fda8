"""The lines of a kernel's page work from nothing: each is run in an empty environment, all indexes are on loopback."""

import html
import os
import re
import shlex
import subprocess
import sys

import pytest
from uv import find_uv_bin

from builder import pins
from builder.matrix.variant import Variant
from tests.given.servers import serving_folder
from tests.given.uv_tool import needs_variants
from tests.wheels import make, one_module

TORCHES = ("2.12.0", "2.13.0", "2.14.0", "2.15.0")
KERNELS = {
    "relu": [
        ("torch212-cxx11-cpu-x86_64-linux", ["torch==2.12.*", "einops"]),
        ("torch213-cxx11-cpu-x86_64-linux", ["torch==2.13.*", "einops"]),
        ("torch213-cxx11-cu126-x86_64-linux", ["torch==2.13.*", "einops"]),
        ("torch213-cxx11-cu130-x86_64-linux", ["torch==2.13.*", "einops"]),
    ],
    "rms-norm": [("torch-stable-abi212-cu130-x86_64-linux", ["torch>=2.12"])],
    "softmax": [("torch-rocm", ["torch"])],
    "sums": [("ctypes-cpu-x86_64-linux", [])],
    "gelu": [("tvm-ffi01-cpu-x86_64-linux", ["apache-tvm-ffi>=0.1,<0.2"])],
}
"""Kernels of each kind that the examples have: for one PyTorch, a stable ABI, pure Python, a plain library, tvm-ffi."""
ANSWER = re.compile(
    r'<div class="answer" data-torch="([^"]+)" data-compute="([^"]+)" data-system="x86_64-linux">(.*?)</div>', re.DOTALL
)


ADDRESS = r"https://[^ \"\n]+"


def index(folder, wheels):
    """Write an index with some wheels, (name, version, requirements), each of which knows its version."""
    for name, version, requires in wheels:
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        module = name.replace("-", "_")
        content = one_module(module, version, text=f"version = {version!r}\n", requires=requires)
        (place / f"{module}-{version}-py3-none-any.whl").write_bytes(content)
    for place in folder.iterdir():
        links = "".join(f'<a href="{path.name}">{path.name}</a>' for path in place.glob("*.whl"))
        (place / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")


@pytest.fixture(scope="module")
def mirrors(tmp_path_factory):
    """Serve an index of each compute platform that the pins name, and a default one; gives their addresses."""
    root = tmp_path_factory.mktemp("mirrors")
    addresses = {part.index for part in pins.load().parts if part.name == "torch" and part.index is not None}
    addresses |= {f"{next(each for each in addresses if '/cu' in each).rpartition('/')[0]}/cu130"}
    names = {address: address.rpartition("/")[2] for address in addresses}
    for name in names.values():
        label = name.replace(".", "")
        index(
            root / name,
            [("torch", f"{version}+{label}", ["filelock"]) for version in TORCHES] + [("filelock", "1", [])],
        )
    others = [(name, "1.0", []) for name in ("einops", "filelock")] + [("apache-tvm-ffi", "0.1.9", [])]
    index(root / "default", [("torch", version, ["filelock"]) for version in TORCHES] + others)
    with serving_folder(root) as served:
        yield {address: f"{served}/{name}" for address, name in names.items()}, f"{served}/default"


def shown(block, torch):
    """Return the text of a block where one PyTorch is chosen, as a browser shows it."""
    own = re.sub(
        r'<span data-torch="([^"]+)">(.*?)</span>',
        lambda found: found[2] if found[1] == torch else "",
        block,
        flags=re.DOTALL,
    )
    return html.unescape(re.sub(r"<[^>]+>", "", own))


def lines_of(page):
    """Yield the choices of a page, and the text that each installer has for them."""
    for torches, compute, body in ANSWER.findall(page):
        for torch in torches.split():
            for installer in ("pip", "uv", "pyproject"):
                block = re.search(rf'<pre data-installer="{installer}"><code>(.*?)</code></pre>', body, re.DOTALL)[1]
                yield torch, compute, installer, shown(block, torch)


def install(text, installer, folder, default):
    """Do in an empty environment what a page says, and return the modules of the environment by their texts."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_", "VIRTUAL"))}
    env |= {"UV_CACHE_DIR": str(folder.parent / "cache"), "UV_DEFAULT_INDEX": default}
    env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": default, "PIP_NO_CACHE_DIR": "1"}
    env |= {"VIRTUAL_ENV": str(folder / ".venv")}
    venv = folder / ".venv"
    # Its module would take the environment of this Python for the one to install into.
    uv = [find_uv_bin()]

    def do(command):
        done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"

    do([*uv, "venv", "--quiet", "--python", sys.executable, venv])
    if installer == "pyproject":
        own = 'name = "mine"\nversion = "1"\nrequires-python = ">=3.10"\n'
        (folder / "pyproject.toml").write_text(text.replace("[project]\n", f"[project]\n{own}", 1))
        do([*uv, "sync", "--quiet"])
    for line in text.splitlines() if installer != "pyproject" else ():
        words = shlex.split(line)
        tool = {"pip": [sys.executable, "-m", "pip", "--python", venv], "uv": uv}[words[0]]
        do([*tool, *words[1:]])
    (packages,) = venv.glob("lib/python*/site-packages")
    return {path.name.removesuffix(".py"): path for path in packages.iterdir()}


@pytest.fixture
def served(dist, indexed, tmp_path):
    """Serve the index of a kernel of the table, and return its address."""
    site = tmp_path / "site"
    site.mkdir()
    with serving_folder(site) as address:
        site.rmdir()

        def serve(kernel, *options):
            for name, requires in KERNELS[kernel]:
                make(dist, kernel, Variant.parse(name), requires=requires, content=f"built = {name!r}\n")
            return indexed("--base-url", address, *options)

        yield serve


def test_the_lines_that_the_command_says_install_the_kernel_and_its_pytorch_from_nothing(
    served, mirrors, tmp_path, capsys
):
    addresses, default = mirrors
    served("relu")
    said = capsys.readouterr().err
    lines = "\n".join(line.strip() for line in said.splitlines() if line.startswith("  pip install "))
    text = re.sub(ADDRESS, lambda found: addresses.get(found[0], found[0]), lines)
    (tmp_path / "env").mkdir()
    found = install(text, "pip", tmp_path / "env", default)
    assert "torch213-cxx11-cpu" in (found["relu"] / "__init__.py").read_text()
    assert found["torch"].read_text() == "version = '2.13.0+cpu'\n"
    assert "einops" in found


@needs_variants
def test_uv_takes_a_variant_and_its_pytorch_from_nothing(served, mirrors, tmp_path, capsys):
    served("relu", "--variants")
    address = re.search(r"--index-url (\S+)/for/", capsys.readouterr().err)[1]
    line = f"uv pip install --preview-features wheel-variants --index {address}/variants/torch213/simple/ relu"
    (tmp_path / "env").mkdir()
    found = install(line, "uv", tmp_path / "env", mirrors[1])
    assert "torch213-cxx11-c" in (found["relu"] / "__init__.py").read_text()
    assert found["torch"].read_text() == "version = '2.13.0'\n"
    assert list(found["relu"].parent.glob("relu-*.dist-info/variant.json"))


@pytest.mark.parametrize(
    "kernel", ["relu", *(pytest.param(name, marks=pytest.mark.slow) for name in KERNELS if name != "relu")]
)
def test_each_line_of_a_page_installs_the_kernel_and_its_pytorch_from_nothing(served, tmp_path, mirrors, kernel):
    addresses, default = mirrors
    page = (served(kernel) / f"kernels/{kernel}/index.html").read_text()
    done = 0
    for torch, compute, installer, said in lines_of(page):
        text = re.sub(ADDRESS, lambda found: addresses.get(found[0], found[0]), said)
        folder = tmp_path / f"{torch}-{compute}-{installer}"
        folder.mkdir()
        found = install(text, installer, folder, default)
        built = (found[kernel.replace("-", "_")] / "__init__.py").read_text()
        assert compute in built or compute.rstrip("0123456789") in built, text
        version = found["torch"].read_text().split("'")[1] if "torch" in found else ""
        if kernel in ("sums", "gelu"):
            assert version == ""
        else:
            assert f"torch{version[0]}{version[2:4]}" == torch
            assert version.partition("+")[2] in ("", compute), "a PyTorch for another platform"
        done += 1
    assert done >= 3
