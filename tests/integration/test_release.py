"""`builder release`: every refusal before the first compile, and a second run that goes on."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from builder.cli import run
from tests import needs
from tests.given.repositories import commit
from tests.integration import hub_server
from tests.paths import ROOT

TINY = ROOT / "tests/data/kernels/tiny"
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="cells of x86_64-linux"),
]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with hub_server.served(monkeypatch, tmp_path / "home") as server:
        yield server


@pytest.fixture
def kernel(tmp_path):
    needs.program("git")
    folder = Path(shutil.copytree(TINY, tmp_path / "tiny"))
    commit(folder)
    return folder


class Said(tuple):
    """An exit code and what was said, of which only a part is compared."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other):
        return self[0] == other[0] and other[1] in self[1] and "Traceback" not in self[1]


@pytest.fixture
def release(kernel, hub, tmp_path, monkeypatch, capsys):
    """Release the kernel, and return the exit code and what was written."""
    monkeypatch.setenv("BUILDER_STORE", str(tmp_path / "store"))
    end = ("--output", str(tmp_path / "dist"), "--no-isolation", "--variant", VARIANT, "-q", "--allow-unsandboxed")

    def run_it(*more, to="hub:team/relu"):
        code = run(["release", str(kernel), "--to", to, "--endpoint-url", hub.address, *end, *more])
        said = capsys.readouterr()
        return Said((code, said.err if code else said.out))

    return run_it


@pytest.fixture
def untouched(hub, tmp_path):
    """Say whether nothing was built and nothing sent."""

    def judge():
        built = (tmp_path / "dist").exists() or list((tmp_path / "store").glob("wheels/*"))
        return not built and (hub.branches, hub.created) == ({}, [])

    return judge


@pytest.fixture
def spoil(kernel, monkeypatch):
    config = kernel / "build.toml"
    text = config.read_text()
    ways = {
        "errors": lambda: config.write_text(text.replace("[torch]", "[torhc]")),
        "uncommitted": lambda: config.write_text(f"{text}\n"),
        "logged out": lambda: monkeypatch.setenv("HF_TOKEN", "hf_another"),
    }
    return lambda way: ways.get(way, lambda: None)()


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("errors", (2, "is not released as it is")),
        ("uncommitted", (6, "are not committed")),
        ("logged out", (6, "the hub did not take")),
        ("hub:relu", (2, "is not a repository")),
        ("s3://bucket", (2, "is not a repository of the hub")),
        ("--create-pr", (6, "a pull request needs one")),
    ],
)
def test_what_cannot_be_released_is_refused_before_anything_is_built(release, spoil, untouched, way, expected):
    spoil(way)
    options = (way,) if way.startswith("--") else ()
    assert release(*options, **({"to": way} if ":" in way else {})) == expected
    assert untouched()


@pytest.mark.slow
def test_a_release_goes_on_where_one_ended_and_builds_nothing_twice(release, hub, untouched):
    assert release("--dry-run") == (0, "would be built")
    assert untouched()
    other = VARIANT.replace("x86_64", "aarch64")
    hub.branches["v1"] = {f"build/{other}/metadata.json": b"{}"}
    hub.broken.append("full")
    assert release() == (6, "the hub did not take")
    done = release("--json")
    said = json.loads(done[1])
    assert [(cell["variant"], cell["status"]) for cell in said["cells"]] == [(VARIANT, "hit")]
    assert (said["status"], said["branch"]) == ("published", "v1")
    metadata = json.loads(hub.branches["v1"][f"build/{VARIANT}/metadata.json"])
    assert len(metadata["provenance"]["kernel"]["commit"]) == 40
    assert f"build/{other}/metadata.json" in hub.branches["v1"]
    assert "aarch64" in hub.branches["v1"]["README.md"].decode()
    assert release() == (0, "has all of it")
    assert hub.commits == ["v1"]
