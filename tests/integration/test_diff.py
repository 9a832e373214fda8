"""What changed between two builds of a real kernel: its ops, by torch's dispatcher, and its functions, by nvcc."""

import json
import re
import subprocess

import pytest

from builder import cli, sandbox
from builder.matrix.variant import Variant
from tests import wheels
from tests.audit import nvidia
from tests.given.device_code import fatbin, image
from tests.given.files import edit
from tests.given.kernels import TINY_CELL, linux
from tests.paths import TESTS

BINDING = "torch-ext/torch_binding.cpp"
SCHEMA = "twice(Tensor input) -> Tensor"


@pytest.fixture
def built(build, tiny, tmp_path):
    """Build the kernel with another schema of its op, and return its wheel."""

    def run(name, schema):
        text = (tiny / BINDING).read_text(encoding="utf-8")
        (tiny / BINDING).write_text(re.sub(r'ops\.def\("[^"]*"\)', f'ops.def("{schema}")', text), encoding="utf-8")
        more = ("--variant", TINY_CELL, "--no-isolation", "--output", str(tmp_path / name))
        result, _ = build(tiny, *more)
        return tmp_path / name / result["wheel"].rpartition("/")[2]

    return run


@pytest.fixture
def ops(builder):
    """Compare two builds; return what changed in the ops, and the notes."""

    def run(before, after, *more, check):
        (found,) = json.loads(builder("diff", before, after, "--json", *more, check=check).stdout)["variants"]
        return {each["subject"]: each for each in found["changes"] if each["part"] == "ops"}, found["notes"]

    return run


@linux
@pytest.mark.skipif(sandbox.why_unavailable() is not None, reason=f"no sandbox here: {sandbox.why_unavailable()}")
@pytest.mark.torch
@pytest.mark.cmake
def test_torch_judges_a_changed_schema_of_a_real_kernel(built, ops, tiny):
    before = built("before", SCHEMA)
    edit(
        tiny / BINDING,
        "tiny_twice(const torch::stable::Tensor &input)",
        "tiny_twice(const torch::stable::Tensor &input, bool)",
    )
    after = built("after", "twice(Tensor input, bool exact=False) -> Tensor")
    name = "_tiny_cpu::twice"
    added, notes = ops(before, after, check=0)
    assert not any("dispatcher" in note for note in notes)
    assert added[name]["after"] == f"{name}(Tensor input, bool exact=False) -> Tensor"
    assert not added[name]["breaking"]
    taken, _ = ops(after, before, check=1)
    assert taken[name]["breaks"] == "torch's parser: calls of the schema before do not fit"
    # The texts of the libraries show the change, and nothing judges it.
    unloaded, notes = ops(before, after, "--no-load", check=1)
    assert unloaded["twice"]["before"] == SCHEMA
    assert "torch's parser could not judge it" in unloaded["twice"]["breaks"]
    assert any("neither build was loaded" in note for note in notes)


@pytest.mark.cuda
def test_a_function_that_nvcc_makes_spill_is_shown_with_its_figures(tmp_path, capsys):
    paths = []
    for name, flags in (("before", ()), ("after", ("-maxrregcount", "32"))):
        cubin = tmp_path / f"{name}.cubin"
        source = TESTS / "data/resources/kernels.cu"
        subprocess.run([nvidia.nvcc(), "-cubin", "-arch=sm_90", *flags, source, "-o", cubin], check=True)
        code = wheels.library(fatbin(image(2, 90, content=cubin.read_bytes())))
        variant = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
        files = wheels.package("demo", variant, archs=["9.0"], more={"_demo_cuda_0123456.abi3.so": code})
        (tmp_path / name).mkdir()
        paths.append(str(wheels.make(tmp_path / name, "demo", variant, files=files, requires=("torch==2.13.*",))))
    assert cli.run(["diff", "--json", "--no-load", *paths]) == 0
    (found,) = json.loads(capsys.readouterr().out)["variants"]
    changed = {each["subject"]: each for each in found["changes"] if each["part"] == "device code"}
    spilling = changed["9.0 void heavy<float, 64>(float*, int)"]
    assert "spills: none" in spilling["before"]
    assert "32 registers" in spilling["after"]
    assert re.search(r"spills: [\d,]+ bytes stored, [\d,]+ loaded", spilling["after"])
