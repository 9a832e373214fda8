"""The pure Nix library says what Python says: cells, pins, source sets; and its derivations depend on nothing else."""

import json
import shutil
import subprocess
import time
from dataclasses import asdict, replace
from operator import itemgetter
from pathlib import Path

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import kernel, pins, toml
from builder.build import header_folders
from builder.build.loadtest import beside
from builder.config import Backend, dependencies, parse
from builder.config.text import Source
from builder.kernel.source_set import HEADERS, source_set
from builder.matrix import SETS, rows, select
from tests import needs
from tests.paths import ROOT, TESTS

NIX = TESTS / "nix"
CASES = TESTS / "data/select"
TINY = TESTS / "data/kernels/tiny"
TINY_CELL = "torch-stable-abi210-cpu-x86_64-linux"
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/build.toml"))
KNOWN = pins.load()

pytestmark = [pytest.mark.nix, needs.only_with("nix-instantiate")]


def evaluate(file, attribute=None, **arguments):
    options = [text for name, value in arguments.items() for text in ("--argstr", name, json.dumps(value))]
    attributes = () if attribute is None else ("-A", attribute)
    done = subprocess.run(
        ["nix-instantiate", "--eval", "--strict", "--json", str(file), *attributes, *options],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ValueError(done.stderr)
    return json.loads(done.stdout)


def library(attribute, **asked):
    return evaluate(NIX / "library.nix", attribute, asked=asked)


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
    config["kernel"] = {f"{name}-part": {"backend": name, "depends": [], "src": ["part.cpp"]} for name in parts}
    chosen = draw(st.lists(st.sampled_from(SETS), min_size=1, unique=True))
    return {"config": config, "all": draw(st.booleans()), "sets": [name for name in SETS if name in chosen]}


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
    return {**known, **names, "compute": cell.compute, "system": cell.system}


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


@pytest.mark.parametrize("framework", ["torch", "torch-noarch", "tvm-ffi"])
@pytest.mark.parametrize("text", ["import triton.language as tl\n", "import torch\n"], ids=["triton", "no triton"])
def test_the_load_test_has_the_same_beside_it_in_both_engines(tmp_path, framework, text):
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
        names = beside.parts(beside.wanted(loaded, cell))
        requirement = replace(pins.Requirement.of(cell, ""), python="cp312")
        try:
            base = KNOWN.environment(requirement)
            wheels = [wheel.file for wheel in KNOWN.beside(names, requirement, base=base).wheels]
        except pins.MissingPinsError:
            wheels = None
        expected.append({"parts": list(names), "wheels": wheels})
    found = library("beside", kernel=str(tmp_path), cells=[as_nix_has_it(cell) for cell in cells], python="cp312")
    assert found == expected
    assert any(each["wheels"] for each in found)


def python_files(root):
    return sorted({*source_set(kernel.load(root)).paths, "build.toml"})


@pytest.mark.parametrize("root", [*EXAMPLES, TINY], ids=lambda path: path.name)
def test_nix_finds_the_source_set_that_python_finds(root):
    assert library("sources", kernel=str(root))["files"] == python_files(root)


def test_nix_knows_the_headers_that_python_knows():
    assert library("sources", kernel=str(TINY))["headers"] == list(HEADERS)


GLOBS = """
[general]
name = "globs"
version = 1
edition = 5
license = "MIT"
backends = ["cpu"]

[torch]
src = ["torch-ext/*.cpp", "top.cpp"]
include = ["headers", "."]
pyext = ["py", "json"]

[kernel.part]
backend = "cpu"
depends = ["torch"]
src = ["src/**/*.cpp", "src/one?.cc", "src/[ab]*.cxx", "src/[!a].c", "src/odd+(1).cpp", "src/*+(*).cpp"]
"""


@pytest.fixture
def globs(tmp_path):
    files = (
        *("torch-ext/globs/__init__.py", "torch-ext/globs/data.json", "torch-ext/globs/note.txt"),
        *("torch-ext/globs/__pycache__/x.py", "torch-ext/globs/.hidden.py", "torch-ext/globs/sub/more.py"),
        *("torch-ext/binding.cpp", "top.cpp", "unused.cpp", "README.md", "root.h", "build/made.h", "dist/made.h"),
        *("src/deep/er/x.cpp", "src/y.cpp", "src/.hidden/z.cpp", "src/one1.cc", "src/one12.cc", "src/a1.cxx"),
        *("src/c1.cxx", "src/a.c", "src/b.c", "src/odd+(1).cpp", "headers/x.cuh", "headers/deep/y.hpp"),
        *("headers/x.txt", "csrc/implied.inl", "csrc/implied.cpp"),
    )
    root = tmp_path / "globs with a space"
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(f"{file}\n")
    (root / "build.toml").write_text(GLOBS)
    return root


def test_nix_reads_globs_as_python_does(globs):
    found = library("sources", kernel=str(globs))["files"]
    assert found == python_files(globs)
    assert "src/deep/er/x.cpp" in found
    assert "src/one12.cc" not in found


def test_a_kernel_with_links_takes_its_whole_folder(globs):
    (globs / "headers/link.h").symlink_to("x.txt")
    found = library("sources", kernel=str(globs))
    assert found["files"] is None
    (globs / "headers/x.txt").write_text("changed\n")
    assert library("sources", kernel=str(globs))["store"] != found["store"]


def derivation(root):
    return library("derivations", kernel=str(root), variants=[TINY_CELL])[TINY_CELL]


@pytest.fixture
def tiny(tmp_path):
    return Path(shutil.copytree(TINY, tmp_path / "tiny"))


def test_a_file_outside_the_source_set_changes_no_derivation(tiny):
    before = derivation(tiny)
    (tiny / "README.md").write_text("new\n")
    (tiny / "notes").mkdir()
    (tiny / "notes/more.cpp").write_text("int x;\n")
    (tiny / "torch-ext/tiny/notes.txt").write_text("new\n")
    (tiny / "csrc/twice.cpp").touch()
    assert derivation(tiny) == before


def test_a_copy_elsewhere_has_the_same_derivation(tiny, tmp_path):
    other = shutil.copytree(tiny, tmp_path / "a place with spaces" / "other-name")
    assert derivation(other) == derivation(tiny)


@pytest.mark.parametrize("file", ["csrc/twice.cpp", "csrc/factor.h", "torch-ext/tiny/__init__.py", "build.toml"])
def test_a_file_of_the_source_set_changes_the_derivation(tiny, file):
    before = derivation(tiny)
    path = tiny / file
    comment = "#" if file.endswith((".py", ".toml")) else "//"
    path.write_text(f"{path.read_text()}\n{comment} changed\n")
    assert derivation(tiny) != before


def test_what_the_host_cannot_build_has_a_reason():
    skipped = library("skipped", kernel=str(TINY))
    reasons = {variant: why for of_example in skipped.values() for variant, why in of_example.items()}
    assert "has no cuda 12.6" in reasons["torch-stable-abi210-cu126-x86_64-linux"]
    assert "no wheels are pinned" in reasons["torch213-cxx11-rocm72-x86_64-linux"]
    assert "3.13 have pins" in reasons["torch212-cxx11-cpu-x86_64-linux"]
    assert "classic CUDA" in reasons["torch213-cxx11-cu130-x86_64-linux"]
    assert "torch213-cxx11-cpu-x86_64-linux" not in reasons


def test_a_cell_without_pins_says_so_when_it_is_evaluated():
    asked = {"kernel": str(ROOT / "examples/relu"), "variants": ["torch212-cxx11-cpu-x86_64-linux"]}
    with pytest.raises(ValueError, match=r"relu torch212-cxx11-cpu-x86_64-linux: no wheels are pinned for torch 2\.12"):
        library("derivations", **asked)


def test_all_cells_of_all_examples_evaluate_in_a_second_of_processor_time():
    import resource  # noqa: PLC0415  not on every system

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    found = library("everything", kernel=str(TINY))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert sum(map(len, found.values())) > 20
    assert used < 2, f"{used:.2f} s of processor time, {time.monotonic() - began:.2f} s"


@pytest.fixture(scope="module")
def stub():
    return evaluate(NIX / "stub.nix")


def test_nixpkgs_maps_to_the_same_interface(stub):
    for kind in ("packages", "shells", "checks"):
        for of_system in stub[kind].values():
            assert all(of_system.values())
    assert set(stub["packages"]["x86_64-linux"]) == {
        *("kernels", "default", "builder"),
        *(path.name for path in EXAMPLES),
    }
    assert {"cpu", "cuda", "rocm", "default"} <= set(stub["shells"]["x86_64-linux"])
    assert {"cpu", "metal"} <= set(stub["shells"]["aarch64-darwin"])


def test_nixpkgs_gives_toolkits_that_no_wheels_are_pinned_for(stub):
    relu = stub["released"]["x86_64-linux"]["relu"]
    assert "torch213-cxx11-cu126-x86_64-linux" in relu
    assert "torch213-cxx11-rocm71-x86_64-linux" in relu
    assert "has no rocm 7.2" in stub["skipped"]["x86_64-linux"]["relu"]["torch213-cxx11-rocm72-x86_64-linux"]


def test_the_interface_of_the_host_is_that_of_nixpkgs():
    names = f"""
      let
        nixpkgs = (import {ROOT}/builder/nix).nixpkgs {{ pkgs = import {NIX}/nixpkgs.nix {{ }}; }};
        host = import {ROOT}/builder/nix/host {{ system = "x86_64-linux"; }};
      in {{ nixpkgs = builtins.attrNames nixpkgs; host = builtins.attrNames host; }}
    """
    done = subprocess.run(
        ["nix-instantiate", "--eval", "--strict", "--json", "--expr", names], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    optional = {"fixup", "nixfmt"}
    assert set(found["nixpkgs"]) - optional == set(found["host"]) - optional


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("[general]\nname = 'x'\n[torch]\n", "run 'builder update'", id="old schema"),
        pytest.param(
            "[general]\nname = 'x'\nedition = 6\n", "of edition 6, and this builder reads edition 5", id="new"
        ),
        pytest.param("[general]\nname = 'x'\nedition = '5'\n", "correct 'general.edition'", id="text"),
        pytest.param("[torch]\n", "has no \\[general\\] table", id="no general"),
    ],
)
def test_a_config_that_nix_does_not_read_says_what_to_run(tmp_path, text, said):
    (tmp_path / "build.toml").write_text(text)
    with pytest.raises(ValueError, match=said):
        library("loaded", kernel=str(tmp_path))


def test_a_folder_without_a_kernel_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"has no build\.toml: name the folder of a kernel"):
        library("loaded", kernel=str(tmp_path))


def test_public_flakes_evaluate_with_the_arguments_they_pass():
    expression = f"""
      let
        outputs = import {ROOT}/builder/nix/outputs.nix {{ }};
        nixpkgs.builderPackageSet.x86_64-linux = import {ROOT}/builder/nix/host {{ system = "x86_64-linux"; }};
        make = arguments: outputs.genKernelFlakeOutputs nixpkgs
          ({{ self = {{ }}; path = {ROOT}/examples/relu; }} // arguments);
        names = arguments: builtins.attrNames (make arguments).legacyPackages.x86_64-linux.cells.x86_64-linux;
      in {{
        plain = names {{ }};
        old = names {{ torchVersions = [ "2.12" ]; }};
        chosen = names {{ torchVersions = builtins.filter (version: version == "2.13"); }};
        rows = names {{ torchVersions = [ {{ torchVersion = "2.13"; cudaVersion = "13.0"; }} ]; }};
        checked = (make {{
          doGetKernelCheck = false;
          pythonCheckInputs = packages: with packages; [ einops ];
          pythonNativeCheckInputs = packages: [ ];
        }}).packages.x86_64-linux ? default;
      }}
    """
    done = subprocess.run(
        ["nix-instantiate", "--eval", "--strict", "--json", "--expr", expression],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert {variant.split("-")[0] for variant in found["old"]} == {"torch212"}
    assert {variant.split("-")[0] for variant in found["chosen"]} == {"torch213"}
    assert found["rows"] == found["chosen"]
    assert set(found["old"]) | set(found["chosen"]) < set(found["plain"])
    assert found["checked"]


def test_the_flake_and_the_engine_give_a_cell_one_derivation():
    variant = "torch-stable-abi210-cpu-x86_64-linux"
    root = ROOT / "examples/rmsnorm-stable"
    request = {
        "kernel": str(root),
        "lock": str(ROOT / "flake.lock"),
        "set": "host",
        "system": "x86_64-linux",
        "options": {"load-test": None, "epoch": None},
        "variants": [variant],
    }
    planned = evaluate(ROOT / "builder/nix/engine.nix", "plan", request=request)
    flake = library("derivations", kernel=str(root), variants=[variant])
    assert planned[variant]["drv"] == flake[variant]


def test_the_lock_file_names_one_input_and_its_hash():
    locked = json.loads((ROOT / "flake.lock").read_text())["nodes"]
    assert set(locked) == {"root", "nixpkgs"}
    assert locked["nixpkgs"]["locked"]["narHash"].startswith("sha256-")


def test_the_package_set_of_the_host_is_data():
    settings_ = toml.loads((ROOT / "builder/nix/host/host.toml").read_text())
    assert set(settings_["pythons"]) <= set(KNOWN.pythons)
    assert all(rule["reason"] for rule in settings_["skip"])


def test_nix_knows_the_headers_of_a_kernel_as_python_does(tmp_path):
    component = '\n[kernel.{0}]\nbackend = "cuda"\ndepends = ["torch", "{0}"]\nsrc = ["one.cu"]\n'
    known = [name for name, facts in dependencies.table()["component"].items() if "cutlass" in facts]
    general = (
        '[general]\nname = "headers"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = ["cpu", "cuda"]\n[torch]\n'
    )
    (tmp_path / "build.toml").write_text(general + "".join(map(component.format, known)))
    config = kernel.load(tmp_path).config
    found = library("headers", kernel=str(tmp_path))
    expected = [asdict(wheel) for wheel in header_folders.wheels(config, Backend.CUDA, environ={})]
    assert sorted(found["cuda"], key=itemgetter("file")) == sorted(expected, key=itemgetter("file"))
    assert found["cpu"] == []
    assert {wheel["file"] for wheel in expected} == set(found["all"])
    assert len(expected) == 3


def test_a_pinned_header_is_a_wheel_of_the_environment_of_the_cells_that_need_it(tiny):
    before = derivation(tiny)
    text = (tiny / "build.toml").read_text()
    (tiny / "build.toml").write_text(text.replace('depends = ["torch"]', 'depends = ["torch", "cutlass_3_8"]'))
    assert derivation(tiny) != before
    request = {"kernel": str(tiny), "variants": [TINY_CELL], "set": "host", "system": "x86_64-linux", "options": {}}
    plan = evaluate(ROOT / "builder/nix/engine.nix", "plan", request={**request, "lock": str(ROOT / "flake.lock")})
    assert "nvidia_cutlass-3.8.0.0-py3-none-any.whl" in [wheel["file"] for wheel in plan[TINY_CELL]["wheels"]]
