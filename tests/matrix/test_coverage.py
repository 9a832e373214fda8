"""The architectures that a cell gets, and cells that are refused before anything is fetched for them."""

import json
import shutil

import jsonschema
import pytest

from builder import matrix, toolchain
from builder.ci.plan import documents, make, text
from builder.ci.plan.jobs import Runners
from builder.cli import group
from builder.config import Backend
from builder.errors import BuilderError
from builder.matrix import coverage
from builder.matrix.selection import Scope
from builder.resources import DATA
from tests.given.cells import cell_of
from tests.given.kernels import of_text
from tests.paths import ROOT

GENERAL = '[general]\nname = "case"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cuda", "rocm"]\n[torch]\n'
RELU = ROOT / "examples/relu"


def kernel(cuda="", rocm=""):
    lines = GENERAL
    for backend, keys in (("cuda", cuda), ("rocm", rocm)):
        lines += f'[kernel.{backend}-part]\nbackend = "{backend}"\ndepends = ["torch"]\nsrc = ["a.cu"]\n{keys}\n'
    return of_text(lines, root=RELU)


def test_a_component_that_names_no_architectures_loses_none():
    one = kernel().config
    assert list(coverage.of(one, cell_of(one, backend=Backend.CUDA, toolkit="12.6"))) == []
    coverage.require(one, cell_of(one, backend=Backend.CUDA, toolkit="12.6"))


@pytest.mark.parametrize(
    ("keys", "backend", "toolkit", "message"),
    [
        pytest.param(
            {"cuda": 'cuda-capabilities = ["8.0", "12.1"]'},
            Backend.CUDA,
            "12.6",
            "component 'cuda-part' is built without 12.1: not in CUDA 12.6",
            id="some",
        ),
        pytest.param({"cuda": 'cuda-capabilities = ["8.0", "12.1"]'}, Backend.CUDA, "13.0", None, id="none"),
        pytest.param(
            {"cuda": 'cuda-capabilities = ["8.0:8.6", "10.0f:10.0"]'},
            Backend.CUDA,
            "12.6",
            "component 'cuda-part' is built without 10.0f:10.0: not in CUDA 12.6",
            id="a pair",
        ),
        pytest.param(
            {"cuda": 'cuda-capabilities = ["8.0:8.6", "10.0f:10.0"]'}, Backend.CUDA, "13.0", None, id="no pair"
        ),
        pytest.param(
            {"cuda": 'cuda-capabilities = ["10.0a", "12.1"]'},
            Backend.CUDA,
            "12.6",
            "component 'cuda-part' asks for 10.0a, 12.1, and CUDA 12.6 compiles none of it",
            id="all",
        ),
        pytest.param(
            {"rocm": 'rocm-archs = ["gfx942", "gfx803"]'},
            Backend.ROCM,
            "7.2",
            "component 'rocm-part' is built without gfx803: not in ROCm 7.2",
            id="an arch",
        ),
        pytest.param(
            {"rocm": 'rocm-archs = ["gfx803"]'},
            Backend.ROCM,
            "7.2",
            "component 'rocm-part' asks for gfx803, and ROCm 7.2 compiles none of it",
            id="all archs",
        ),
    ],
)
def test_what_is_lost_is_named_with_the_toolkit(keys, backend, toolkit, message):
    one = kernel(**keys).config
    (covered,) = coverage.of(one, cell_of(one, backend=backend, toolkit=toolkit))
    assert covered.message == message


def test_a_component_that_the_cell_leaves_out_is_not_asked_for():
    one = kernel(cuda='cuda-capabilities = ["12.1"]\ncuda-minver = "13.0"').config
    old = cell_of(one, backend=Backend.CUDA, toolkit="12.6")
    assert list(coverage.of(one, old)) == []
    coverage.require(one, old)


@pytest.mark.parametrize(
    ("keys", "backend", "toolkit", "has"),
    [
        ({"cuda": 'cuda-capabilities = ["12.1"]'}, Backend.CUDA, "12.6", "9.0"),
        ({"rocm": 'rocm-archs = ["gfx803"]'}, Backend.ROCM, "7.2", "gfx942"),
    ],
    ids=["cuda", "rocm"],
)
def test_a_cell_without_device_code_is_refused_with_what_its_toolkit_has(keys, backend, toolkit, has):
    one = kernel(**keys).config
    with pytest.raises(BuilderError, match="compiles none of it") as error:
        coverage.require(one, cell_of(one, backend=backend, toolkit=toolkit))
    assert has in str(error.value.help)


def test_the_plan_names_what_is_lost_in_every_format():
    asked = kernel(cuda='cuda-capabilities = ["8.0", "12.1"]')
    one = make(asked, matrix.rows(), Scope(sets=("release", "legacy"), systems=("x86_64-linux",)))
    message = "component 'cuda-part' is built without 12.1: not in CUDA 12.6"
    assert f"3 cells: {message}" in text.table(one, None)
    assert f"3 cells: {message}" in text.explain(one)
    document = json.loads(documents.document(one, Runners(), None))
    jsonschema.validate(document, json.loads((DATA / "matrix.schema.json").read_text(encoding="utf-8")))
    lost = [each for each in document["skipped"] if each["rule"] == "cuda-capabilities"]
    assert [each["message"] for each in lost] == [message] * 3
    assert asked.source.text.splitlines()[lost[0]["line"] - 1] == 'cuda-capabilities = ["8.0", "12.1"]'


@pytest.fixture
def nothing_left(tmp_path):
    """A copy of an example whose CUDA component asks for what no toolkit has."""
    folder = tmp_path / "relu"
    shutil.copytree(RELU, folder)
    file = folder / "build.toml"
    before = file.read_text()
    assert before.count('backend = "cuda"\n') == 1
    file.write_text(before.replace('backend = "cuda"\n', 'backend = "cuda"\ncuda-capabilities = ["6.0"]\n'))
    return folder


def test_a_build_refuses_such_a_cell_before_it_fetches_anything(nothing_left, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(toolchain, "system", lambda: "x86_64-linux")
    variant = "torch213-cxx11-cu130-x86_64-linux"
    arguments = ["build", str(nothing_left), "--variant", variant, "--store", str(tmp_path / "store")]
    assert group.run([*arguments, "--output", str(tmp_path / "dist"), "--json"]) == 2
    (outcome,) = json.loads(capsys.readouterr().out)
    assert outcome["status"] == "failed"
    assert "asks for 6.0, and CUDA 13.0 compiles none of it" in outcome["reason"]
    assert "cuda-minver" in outcome["help"]
    assert list((tmp_path / "store/environments").glob("*")) == []
    assert group.run([*arguments, "--dry-run"]) == 0
    assert f"{variant}: is refused ({variant}: component 'relu-cuda' asks for 6.0" in capsys.readouterr().out
