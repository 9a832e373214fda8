"""A cell whose torch is not pinned is built with what an index has now, and with the same file ever after."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from builder.environment import interpreters
from builder.hashes import sha256
from builder.pins import MissingPinsError
from builder.wheel.archive import Bytes, pack
from tests.given.cells import cell_in
from tests.given.planning import planner
from tests.paths import ROOT

RELU = ROOT / "examples/relu"
CELL = cell_in(RELU, variant="torch215-cxx11-cpu-x86_64-linux")
"""The index of its torch is named, and none of its files."""
OFFLINE = {"PIP_CONFIG_FILE": os.devnull, "UV_OFFLINE": "1", "UV_NO_CONFIG": "1"}


@pytest.fixture(autouse=True)
def _python_of_debian_12(monkeypatch):
    here = interpreters.Interpreter(path=Path("/usr/bin/python3.11"), tag="cp311")
    monkeypatch.setattr(interpreters, "running", lambda: here)
    monkeypatch.setattr(interpreters, "find", lambda *_, **__: None)
    monkeypatch.setattr("builder.toolchain.system", lambda: "x86_64-linux")


def publish(folder, version="2.15.0+cpu", content=b""):
    """Write a wheel of torch into a folder, and return its digest."""
    info = f"torch-{version}.dist-info"
    members = {
        "torch/__init__.py": content,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-manylinux_2_28_x86_64\n",
    }
    folder.mkdir(exist_ok=True)
    wheel = pack({name: Bytes(text) for name, text in members.items()}, dist_info=info)
    (folder / f"torch-{version}-cp311-cp311-manylinux_2_28_x86_64.whl").write_bytes(wheel)
    return sha256(wheel)


@pytest.fixture
def engine(tmp_path):
    """Return planners that share a store; what they say is kept."""

    def make(*, resolves=True):
        said = []
        environ = {**OFFLINE, "PIP_FIND_LINKS": str(tmp_path / "wheels"), "UV_CACHE_DIR": str(tmp_path / "uv")}
        made = replace(
            planner(RELU, tmp_path, environ=environ), resolves=resolves, step=lambda _, text: said.append(text)
        )
        return made, said

    return make


def torch_of(planner):
    return planner.spec(CELL).environment.pins["torch"]


def test_the_file_that_an_index_has_is_shown_and_stays_the_one_of_the_store(engine, tmp_path):
    digest = publish(tmp_path / "wheels")
    first, said = engine()
    assert (torch_of(first).sha256, torch_of(first).index) == (digest, "https://download.pytorch.org/whl/cpu")
    assert f"{torch_of(first).file}, sha256 {digest}" in said[0]
    assert publish(tmp_path / "wheels", content=b"another = True\n") != digest
    for resolves in (True, False):
        later, _ = engine(resolves=resolves)
        assert torch_of(later).sha256 == digest


def test_the_build_for_another_toolkit_is_not_taken_for_it(engine, tmp_path):
    publish(tmp_path / "wheels", "2.15.0")
    with pytest.raises(MissingPinsError) as raised:
        torch_of(engine()[0])
    assert raised.value.message.startswith(
        "no wheels are pinned for torch 2.15 cpu on x86_64-linux, and no index that can be reached has them (uv: "
    )


def test_a_plan_asks_no_index(engine, tmp_path):
    publish(tmp_path / "wheels")
    with pytest.raises(MissingPinsError) as raised:
        torch_of(engine(resolves=False)[0])
    assert raised.value.message == "no wheels are pinned for torch 2.15 cpu on x86_64-linux, with any Python"
