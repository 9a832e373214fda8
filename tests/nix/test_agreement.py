"""Nix and Python agree on cells, pins, and the packages of a load test."""

import json
from dataclasses import replace

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import kernel, pins
from builder.config import LoadTestRule, Version, parse
from builder.config.gpus import code_of
from builder.config.text import Source
from builder.loadtest import packages
from builder.make.job import Spec
from builder.matrix import SETS, architectures, rows, select
from builder.plan.planner import pinned_wheels
from builder.wheel.options import BuildOptions
from tests import needs
from tests.nix.evaluating import EXAMPLES, KNOWN, NIX, evaluate, library
from tests.paths import ROOT, TESTS

pytestmark = [pytest.mark.nix, needs.only_with("nix-instantiate")]
CASES = TESTS / "data/select"


def test_every_shared_case_of_the_matrix_agrees():
    found = evaluate(NIX / "select.nix")
    assert sorted(found) == sorted(path.name for path in CASES.glob("*.toml"))
    assert [name for name, case in found.items() if not case["agrees"]] == []


VERSIONS = ("2.9", "2.11", "2.12", "2.13", "2.14", "2.20")
TOOLKITS = ("11.8", "12.6", "13.0", "13.2", "2025.3", "14.0")
COMPILED = ("cpu", "cuda", "metal", "rocm", "xpu")
SYSTEMS = ("x86_64-linux", "aarch64-linux", "aarch64-darwin")


def maybe(strategy):
    return st.one_of(st.none(), strategy)


def table(**values):
    return {name.replace("_", "-"): value for name, value in values.items() if value not in (None, {})}


@st.composite
def cases(draw):
    """Return a config as its file has it, in either schema, with what is asked of the matrix."""
    backends = draw(st.lists(st.sampled_from((*COMPILED, "tpu")), min_size=1, unique=True))
    framework = draw(st.sampled_from(("torch", "torch-noarch", "tvm-ffi")))
    current = draw(st.booleans())
    compiled = [backend for backend in backends if backend in COMPILED]
    parts = draw(st.lists(st.sampled_from(compiled), unique=True)) if compiled and framework != "torch-noarch" else []
    bounds = st.sampled_from(VERSIONS)
    tables = st.dictionaries(st.sampled_from(backends), bounds, max_size=3)
    frameworks = {
        "torch": table(
            minver=draw(maybe(bounds)),
            maxver=draw(maybe(bounds)),
            stable_abi=draw(maybe(st.one_of(bounds, tables) if current else bounds)),
        ),
        "torch-noarch": {},
        "tvm-ffi": {"src": ["binding.cpp"]},
    }
    toolkits = st.sampled_from(TOOLKITS)
    cuda = table(minver=draw(maybe(toolkits)), maxver=draw(maybe(toolkits))) if draw(st.booleans()) else None
    general = {"name": "case", "version": 1, "license": "MIT", "backends": backends} | table(cuda=cuda)
    config = {"general": general, framework: frameworks[framework]}
    if current:
        general["edition"] = 5
        config |= table(matrix=draw(maybe(matrices(backends))))
    config["kernel"] = {f"{name}-part": draw(components(name, framework, current=current)) for name in parts}
    if current and framework == "torch" and parts and draw(st.booleans()):
        members = {
            f"{name}-more": draw(components(name, framework, current=True)) | {"extension": "more"} for name in parts
        }
        config["kernel"] |= members
        shared = draw(conditions(parts[0], framework)) if len(parts) == 1 else {}
        config["extension"] = {"more": table(when=shared)}
    chosen = draw(st.lists(st.sampled_from(SETS), min_size=1, unique=True))
    return {"config": config, "all": draw(st.booleans()), "sets": [name for name in SETS if name in chosen]}


ARCHS = {
    "cuda": ("7.5", "8.0", "8.6", "9.0", "9.0a", "10.0", "10.0f", "10.1", "10.3a", "11.0", "12.0"),
    "rocm": ("gfx906", "gfx90a", "gfx942", "gfx1250"),
}
CAPABILITIES = (*ARCHS["cuda"], "8.0+PTX", "10.1+PTX", "12.0+PTX", "12.0f")
PAIRS = ("8.0:8.9", "10.0f:10.0", "10.0f:10.3", "12.0:12.1f")
"""Those that may stand beside any capability of these."""


@st.composite
def conditions(draw, backend, framework):
    """Return a `when` that a component of a backend may have, or nothing."""
    ranges = ["==2.12", ">=2.12", "<2.13,!=2.10"], [">=13.0", "<13.0", "!=13.2,>12.6"]
    found = {"system": draw(maybe(st.sampled_from(SYSTEMS)))}
    if framework == "torch":
        found["torch"] = draw(maybe(st.sampled_from(ranges[0])))
    if backend == "cuda":
        found["cuda"] = draw(maybe(st.sampled_from(ranges[1])))
    if backend in ARCHS:
        found["arch"] = draw(maybe(st.lists(st.sampled_from(ARCHS[backend]), min_size=1, max_size=2, unique=True)))
    return table(**found) if draw(st.booleans()) else {}


@st.composite
def components(draw, backend, framework, *, current):
    names = {"cuda": ("cuda-capabilities", CAPABILITIES), "rocm": ("rocm-archs", ARCHS["rocm"])}
    found = {"backend": backend, "depends": [], "src": ["part.cpp"]}
    if backend in names:
        key, archs = names[backend]
        known = (*archs, *PAIRS) if backend == "cuda" and current else archs
        found |= table(**{key: draw(maybe(st.lists(st.sampled_from(known), min_size=1, unique=True)))})
    return found | (table(when=draw(conditions(backend, framework))) if current else {})


@st.composite
def matrices(draw, backends):
    systems = st.lists(st.sampled_from(SYSTEMS), min_size=1, unique=True)
    toolkits = st.lists(st.sampled_from(TOOLKITS), min_size=1, unique=True)
    own = {
        backend: found
        for backend in draw(st.lists(st.sampled_from(backends), unique=True))
        if (found := table(systems=draw(maybe(systems)), toolkits=draw(maybe(toolkits))))
    }
    return table(systems=draw(maybe(systems))) | own


def selected(case):
    config = parse(Source(name="build.toml", text=tomlkit.dumps(case["config"])))
    among = [row for row in rows() if row.set in case["sets"]]
    cells = select(config, among, unbundled=case["all"])
    return [[cell.variant, cell.system, str(cell.torch)] for cell in cells]


# Many cases in each call: starting Nix takes longer than a hundred of them.
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(cases(), min_size=40, max_size=40))
def test_nix_selects_what_python_selects(batch):
    found = library("selected", cases=batch)
    for case, cells in zip(batch, found, strict=True):
        assert cells == selected(case), json.dumps(case)


@st.composite
def requests(draw):
    backend = draw(st.sampled_from(("cuda", "rocm")))
    pairs = (*PAIRS, "10.0f:10.1", "10.1:10.3", "10.1f:10.1", "9.0:10.1", "7.0:8.6", "8.0:9.0a", "9.0a:9.0a")
    key, known = {"cuda": ("cuda-capabilities", (*CAPABILITIES, *pairs)), "rocm": ("rocm-archs", ARCHS["rocm"])}[
        backend
    ]
    named = draw(maybe(st.lists(st.sampled_from(known), min_size=1, unique=True)))
    toolkit = draw(st.sampled_from(("11.0", "11.8", "12.6", "12.8", "12.9", "13.0", "13.4", "14.0")))
    return {"part": {"backend": backend} | table(**{key: named}), "toolkit": toolkit}


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(requests(), min_size=60, max_size=60))
def test_nix_compiles_for_the_architectures_that_python_does(batch):
    found = library("compiled", cases=batch)
    for case, names in zip(batch, found, strict=True):
        part, toolkit = case["part"], Version(case["toolkit"])
        named = next((tuple(value) for key, value in part.items() if key != "backend"), None)
        here = architectures.cuda(named, toolkit) if part["backend"] == "cuda" else architectures.rocm(named)
        assert {code_of(name).real for name in here.compiled} == set(names), json.dumps(case)


def test_nix_finds_the_pins_that_python_finds_for_every_cell_and_python():
    needs, expected = [], []
    seen = {}
    for path in EXAMPLES:
        for cell in select(kernel.load(path).config, rows(), unbundled=True):
            requirement = pins.Requirement.of(cell, "")
            seen[requirement] = cell
    for requirement in seen:
        for python in KNOWN.pythons:
            wanted = replace(requirement, python=python)
            needs.append(
                {
                    "recipe": wanted.recipe,
                    "version": wanted.version,
                    "compute": wanted.compute,
                    "system": wanted.system,
                    "python": python,
                }
            )
            try:
                wheels = KNOWN.environment(wanted).wheels
                expected.append([[wheel.file, wheel.sha256, wheel.index] for wheel in wheels])
            except pins.MissingPinsError:
                expected.append(None)
    assert library("pinned", needs=needs) == expected
    assert any(found is None for found in expected)
    assert any(found is not None for found in expected)


def as_nix_has_it(cell):
    """Return what of a cell the pins ask for, as JSON."""
    values = {"stable_abi": cell.stable_abi, "tvm_ffi": cell.tvm_ffi, "torch": cell.torch}
    known = {name.replace("_", "-"): None if value is None else str(value) for name, value in values.items()}
    names = {"framework": cell.framework.value, "backend": cell.backend.value}
    return {**known, **names, "compute": cell.compute, "system": cell.system, "toolkit": cell.toolkit}


STRANGER = """
[general]
name = "stranger"
version = 1
edition = 5
license = "MIT"
backends = ["cpu", "cuda", "rocm", "xpu"]
python-depends = ["helion", "einops"]

[general.cuda]
python-depends = ["nvidia-cutlass-dsl"]

[{framework}]
src = ["binding.cpp"]
"""


OF_HOST = "cp311"
"""The Python of the machine's own tools, as `host.toml` has it."""


def environments(root, text):
    """Return the files of the environment of each compute, on which both engines agree."""
    (root / "build.toml").write_text(text)
    config = kernel.load(root).config
    cells = [
        cell
        for cell in select(config, rows(), unbundled=True)
        if cell.system == "x86_64-linux" and OF_HOST in KNOWN.pinned_pythons(KNOWN.need(cell))
    ]
    given = library("linked", kernel=str(root), cells=[as_nix_has_it(cell) for cell in cells])
    named = {}
    for cell, found in zip(cells, given, strict=True):
        requirement = replace(KNOWN.need(cell), python=found["tag"])
        wanted = pinned_wheels(KNOWN, requirement, config, cell, environ={})
        assert found["files"] == [wheel.file for wheel in wanted.wheels]
        named[cell.compute] = " ".join(found["files"])
    return named


def component(name, backend, lines=""):
    return f'\n[kernel.{name}]\nbackend = "{backend}"\ndepends = []\nsrc = ["a.cpp"]\n{lines}\n'


@pytest.mark.parametrize("framework", ["torch", "tvm-ffi", "ctypes"])
def test_the_libraries_that_a_kernel_is_linked_to_are_in_the_environment_of_both_engines(tmp_path, framework):
    text = f'{STRANGER.format(framework=framework)}libraries = ["curand", "dl"]\n'
    if framework == "ctypes":
        text = text.replace(', "rocm", "xpu"', "").replace('src = ["binding.cpp"]', 'exports = ["a"]')
    text += component("cpu", "cpu") + component("cuda", "cuda", 'libraries = ["nvrtc", "cublasLt"]')
    named = environments(tmp_path, text)
    assert "nvidia" not in named["cpu"]
    assert all(f"nvidia_{name}-" in named["cu130"] for name in ("cublas", "cuda_nvrtc", "curand"))


def test_libraries_of_what_a_cell_leaves_out_are_in_the_environment_of_neither_engine(tmp_path):
    text = STRANGER.format(framework="torch") + component("cuda", "cuda")
    text += component("older", "cuda", 'libraries = ["nvrtc"]\nwhen = { cuda = "<13.0" }')
    text += component("jpeg", "cuda", 'extension = "jpeg"') + component("random", "cuda", 'extension = "random"')
    text += '\n[extension.jpeg]\nlibraries = ["nvjpeg"]\nwhen = { cuda = "<13.0", arch = "9.0a" }\n'
    text += '\n[extension.random]\nlibraries = ["curand"]\nwhen = { cuda = ">=13.0", arch = "9.0a" }\n'
    named = environments(tmp_path, text)
    assert [f"nvidia_{name}-" in named["cu130"] for name in ("cuda_nvrtc", "nvjpeg", "curand")] == [False, False, True]


@pytest.mark.parametrize("framework", ["torch", "torch-noarch", "tvm-ffi"])
@pytest.mark.parametrize("text", ["import triton.language as tl\n", "import torch\n"], ids=["triton", "no triton"])
def test_the_load_test_has_the_same_packages_in_both_engines(tmp_path, framework, text):
    config = STRANGER.format(framework=framework)
    (tmp_path / "build.toml").write_text(config if framework != "torch-noarch" else config.rpartition("src")[0])
    package = tmp_path / ("tvm-ffi-ext" if framework == "tvm-ffi" else "torch-ext") / "stranger/sub"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("from .sub import part\n")
    (package / "part.py").write_text(text)
    loaded = kernel.load(tmp_path)
    cells = [cell for cell in select(loaded.config, rows(), unbundled=True) if cell.system == "x86_64-linux"]
    expected = []
    for cell in cells:
        names = packages.parts(packages.wanted(loaded, cell))
        requirement = replace(KNOWN.need(cell), python="cp312")
        try:
            base = KNOWN.environment(requirement)
            wheels = [wheel.file for wheel in KNOWN.additional(names, requirement, base=base).wheels]
        except pins.MissingPinsError:
            wheels = None
        expected.append({"parts": list(names), "wheels": wheels})
    found = library(
        "loadTestPackages", kernel=str(tmp_path), cells=[as_nix_has_it(cell) for cell in cells], python="cp312"
    )
    assert found == expected
    assert any(each["wheels"] for each in found)


@pytest.mark.parametrize(
    ("example", "variant"),
    [
        pytest.param("rmsnorm-stable", "torch-stable-abi210-cpu-x86_64-linux", id="stable"),
        pytest.param("relu", "torch213-cxx11-cpu-x86_64-linux", id="torch"),
        pytest.param("relu-tvm-ffi", "tvm-ffi01-cpu-x86_64-linux", id="tvm-ffi"),
        pytest.param("silu-and-mul", "torch-cuda", id="noarch"),
    ],
)
def test_the_spec_that_nix_writes_is_the_value_of_python(example, variant):
    asked = {"label": False, "load-test": "try", "epoch": 1000000000, "wheel-version": None}
    (text,) = library("specs", kernel=str(ROOT / "examples" / example), variants=[variant], options=asked)
    spec = Spec.from_json(text)
    assert json.loads(spec.to_json()) == json.loads(text)
    assert spec.options == BuildOptions(label=False, load_test=LoadTestRule.TRY, epoch=1000000000)
    release = [row for row in rows() if row.set == "release"]
    cells = select(kernel.load(ROOT / "examples" / example).config, release, unbundled=True)
    assert spec.cell in cells
    assert spec.pins == KNOWN.environment(replace(KNOWN.need(spec.cell), python=spec.environment.pins.python)).digest
