"""The pin file and what is chosen from it."""

import json
import os
import re
import subprocess
from dataclasses import replace

import click.testing
import pytest

from builder import matrix, pins, toml
from builder.cli.pins import command
from builder.config import Backend, Framework, Version, dependencies
from builder.environment import resolve
from builder.errors import DifferenceError, ToolError
from builder.pins import pin_file

SHA = "ab" * 32
SMALL = f"""
pythons = ["cp311", "cp312"]

[environment]
torch = [["tools", "torch"], ["tools", "torch/cpu"]]

[[part]]
name = "tools"
about = "what a build runs"
requires = ["ninja"]
[part.wheels.x86_64-linux]
any = ["ninja-1.0-py3-none-any.whl"]

[[part]]
name = "torch"
about = "the CPU build"
version = "2.13"
compute = ["cpu"]
requires = ["torch==2.13.0"]
only = ["torch"]
index = "https://example.org/cpu"
[part.wheels.x86_64-linux]
cp311 = ["torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"]

[wheel]
"ninja-1.0-py3-none-any.whl" = {{ name = "ninja", version = "1.0", sha256 = "{SHA}" }}
"torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl" = \
{{ name = "torch", version = "2.13.0+cpu", sha256 = "{SHA}" }}
"""
NINJA = f'"ninja-1.0-py3-none-any.whl" = {{ name = "ninja", version = "1.0", sha256 = "{SHA}" }}'
CPU_CELL = pins.Requirement(
    framework=Framework.TORCH, version="2.13", compute="cpu", python="cp311", system="x86_64-linux"
)


@pytest.fixture(scope="module")
def shipped():
    return pins.load()


@pytest.fixture
def small(tmp_path):
    file = tmp_path / "pins.toml"
    file.write_text(SMALL)
    return file


def test_every_cell_of_the_matrix_is_pinned_with_tested_files_or_its_row_says_that_it_is_not(shipped):
    cells = [row for row in matrix.rows() if row.variant is not None]
    tested = replace(shipped, parts=tuple(part for part in shipped.parts if part.tested))
    assert len(cells) > 20
    for row in cells:
        requirement = replace(CPU_CELL, version=str(row.torch), compute=row.compute, system=row.system)
        assert bool(tested.pinned_pythons(requirement)) is row.tested, str(row)
        if row.tvm_ffi is not None:
            requirement = replace(requirement, framework=Framework.TVM_FFI, version=str(row.tvm_ffi))
            assert shipped.pinned_pythons(requirement), str(row)


def test_the_shipped_file_has_no_environment_with_two_versions_of_a_package(shipped):
    assert list(shipped.conflicts()) == []


def test_the_shipped_file_is_as_the_tool_writes_it(shipped):
    assert pins.to_toml(shipped) == pins.FILE.read_text(encoding="utf-8")


def test_the_shipped_file_names_no_index_but_those_of_torch(shipped):
    indexes = {part.index for part in shipped.parts if part.index}
    assert all(index.startswith("https://download.pytorch.org/whl/") for index in indexes)
    addresses = set(re.findall(r"https?://[^/\"]+", pins.FILE.read_text(encoding="utf-8")))
    assert addresses == {"https://download.pytorch.org"}


def test_a_cuda_13_environment_has_the_toolkit_and_a_stable_one_the_cpu_torch(shipped):
    classic = replace(CPU_CELL, compute="cu130")
    stable = replace(classic, stable_abi=True)
    assert shipped.environment(classic)["nvidia-cuda-nvcc"].version.startswith("13.0.")
    assert shipped.environment(classic)["torch"].version == "2.13.0"
    assert shipped.environment(stable)["torch"].version == "2.13.0+cpu"
    names = {wheel.name for wheel in shipped.environment(stable).wheels}
    assert "nvidia-cuda-nvcc" in names
    assert "nvidia-cublas" not in names


def test_cuda_12_comes_from_the_machine(shipped):
    names = {wheel.name for wheel in shipped.environment(replace(CPU_CELL, compute="cu126", python="cp313")).wheels}
    assert "torch" in names
    assert not {name for name in names if name.startswith(("nvidia", "cuda"))}


def test_no_environment_holds_the_libraries_torch_runs_on(shipped):
    names = {wheel.name for each in shipped.requirements() for wheel in shipped.environment(each).wheels}
    assert not {"nvidia-cudnn-cu13", "nvidia-nccl-cu13", "triton"} & names


GPU_CELL = replace(CPU_CELL, compute="cu130")
ADDITIONAL = ("triton", "einops", "nvidia-cutlass-dsl", "apache-tvm-ffi", "helion")


@pytest.mark.parametrize("name", ADDITIONAL)
def test_what_load_tests_have_is_pinned_for_every_python_of_a_release(shipped, name):
    base = shipped.environment(GPU_CELL)
    for system in ("x86_64-linux", "aarch64-linux"):
        for python in shipped.pythons:
            wanted = replace(GPU_CELL, system=system, python=python)
            found = shipped.additional((name,), wanted, base=replace(base, python=python, system=system))
            assert name in {wheel.name for wheel in found.wheels}, (system, python)


def test_what_load_tests_have_leaves_the_environment_of_the_build_as_it_is(shipped):
    base = shipped.environment(GPU_CELL)
    found = shipped.additional(ADDITIONAL, GPU_CELL, base=base)
    assert {wheel.name for wheel in found.wheels} & {wheel.name for wheel in base.wheels} == set()
    assert "numpy" not in {wheel.name for wheel in found.wheels}
    assert shipped.environment(GPU_CELL).digest == base.digest


def test_the_torch_of_the_cpu_brings_no_triton(shipped):
    base = shipped.environment(CPU_CELL)
    assert shipped.additional(("triton",), CPU_CELL, base=base).wheels == ()


def test_every_dependency_that_a_config_can_name_is_pinned_or_known_to_be_of_no_index(shipped):
    parts = {part.name for part in shipped.parts}
    names = (*(name for names in dependencies.table()["python"].values() for name in names), "triton")
    assert {name for name in names if dependencies.distribution(name) not in parts} == {"nki", "onednn"}


def test_a_stable_cell_without_a_pinned_cpu_torch_takes_the_cuda_one(shipped):
    requirement = replace(CPU_CELL, version="2.15", compute="cu132", stable_abi=True)
    assert shipped.environment(requirement)["torch"].version == "2.15.0"


def test_files_that_nobody_has_fetched_serve_only_the_cells_of_their_own_torch(shipped):
    own = replace(CPU_CELL, version="2.14")
    assert shipped.environment(own)["torch"].version == "2.14.1+cpu"
    stable = replace(own, compute="cu130", stable_abi=True)
    assert shipped.environment(stable)["torch"].version == "2.14.1"
    noarch = replace(own, framework=Framework.TORCH_NOARCH)
    assert shipped.of_plain_torch(noarch) == replace(noarch, version="2.13")


def test_an_update_of_files_that_nobody_had_fetched_makes_them_tested(shipped):
    number = next(at for at, part in enumerate(shipped.parts) if not part.tested)
    part = shipped.parts[number]
    (system, of_system), *_ = part.wheels.items()
    (python, (file,)), *_ = of_system.items()
    found = resolve.Resolution(part=number, system=system, python=python, wheels=(shipped.wheels[file],))
    assert resolve.updated(shipped, (found,)).parts[number].tested
    assert not resolve.updated(shipped, (replace(found, error="no"),)).parts[number].tested


def test_a_tvm_ffi_environment_has_no_torch(shipped):
    requirement = replace(CPU_CELL, framework=Framework.TVM_FFI, version="0.1")
    names = {wheel.name for wheel in shipped.environment(requirement).wheels}
    assert {"apache-tvm-ffi", "cmake", "ninja", "scikit-build-core"} <= names
    assert "torch" not in names


def test_a_python_without_pins_is_refused_with_those_that_have_them(shipped):
    with pytest.raises(pins.MissingPinsError) as error:
        shipped.environment(replace(CPU_CELL, python="cp310"))
    assert str(error.value).splitlines()[0] == (
        "no wheels are pinned for torch 2.13 cpu on x86_64-linux with Python 3.10"
    )
    assert "3.11 or 3.12 or 3.13 or 3.14" in str(error.value)
    assert error.value.pythons == ("cp311", "cp312", "cp313", "cp314")


def test_a_wheel_without_code_is_loaded_with_the_newest_pinned_torch_of_the_cpu(shipped):
    asked = replace(CPU_CELL, framework=Framework.TORCH_NOARCH)
    assert shipped.of_plain_torch(asked) == asked
    assert shipped.of_plain_torch(replace(asked, compute="rocm72")) == asked
    # The torch of CUDA is pinned too, and does not import without the libraries it runs on.
    newer = replace(asked, version="2.15", compute="cu132")
    assert shipped.environment(newer)["torch"].version == "2.15.0"
    assert shipped.of_plain_torch(newer) == asked
    without = replace(asked, version="2.13", compute="cu130", system="riscv64-linux")
    assert shipped.of_plain_torch(without) == without


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"version": "2.9"}, id="another torch"),
        pytest.param({"compute": "cu118"}, id="another toolkit"),
        pytest.param({"system": "riscv64-linux"}, id="another system"),
    ],
)
def test_a_cell_without_pins_says_so(shipped, change):
    with pytest.raises(pins.MissingPinsError, match="with any Python") as error:
        shipped.environment(replace(CPU_CELL, **change))
    assert "--no-isolation" in str(error.value)
    assert error.value.exit_code == 4


def test_the_requirement_of_a_cell_has_the_version_of_its_framework():
    cell = matrix.Cell(
        variant="tvm-ffi01-cu132-x86_64-linux",
        framework=Framework.TVM_FFI,
        backend=Backend.CUDA,
        system="x86_64-linux",
        torch=Version("2.13"),
        toolkit="13.2",
        compute="cu132",
        tvm_ffi=Version("0.1"),
    )
    assert pins.Requirement.of(cell, "cp311").version == "0.1"
    assert pins.Requirement.of(cell, "cp311").recipe == "tvm-ffi-cuda"


def test_the_digest_depends_on_content_and_not_on_where_it_is_served(small):
    first = pins.load(small).environment(CPU_CELL)
    small.write_text(SMALL.replace("example.org/cpu", "mirror.example.org"))
    moved = pins.load(small).environment(CPU_CELL)
    small.write_text(SMALL.replace(SHA, "cd" * 32, 1))
    changed = pins.load(small).environment(CPU_CELL)
    assert first.wheels[1].index != moved.wheels[1].index
    assert first.digest == moved.digest != changed.digest
    assert json.loads(first.to_json())["wheels"][0]["name"] == "ninja"


def test_a_wheel_knows_the_index_of_its_part(small):
    found = pins.load(small).environment(CPU_CELL)
    assert [wheel.index for wheel in found.wheels] == [None, "https://example.org/cpu"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        pytest.param(f', sha256 = "{SHA}" }}', " }", 'any.whl".sha256: missing', id="no hash"),
        pytest.param(SHA, "abc", "must be 64 hexadecimal digits, not 'abc'", id="short hash"),
        pytest.param(SHA, SHA.upper(), "must be 64 hexadecimal digits", id="upper-case hash"),
        pytest.param('name = "ninja"', 'name = "cmake"', "is 'cmake', and the file's is 'ninja'", id="other name"),
        pytest.param('version = "1.0"', 'version = "1.1"', "is '1.1', and the file's is '1.0'", id="other version"),
        pytest.param(NINJA, "", "has no [wheel] entry, so no hash", id="unlisted file"),
        pytest.param('any = ["', "any = []\ncp311 = []\n#", "no part uses it", id="unused wheel"),
        pytest.param("[part.wheels.x86_64-linux]", "[part.wheels.amiga]", "unknown system", id="unknown system"),
        pytest.param("cp311 = [", "cp312 = [", "cannot be installed there", id="wrong Python"),
        pytest.param("cp311 = [", "py3 = [", "must be a Python tag such as 'cp311'", id="not a Python tag"),
        pytest.param("https://", "http://", "must be an https address", id="index without TLS"),
        pytest.param("https://", "https://me:secret@", "without user name", id="index with password"),
        pytest.param('"torch/cpu"', '"torhc/cpu"', "no part is named 'torhc/cpu'", id="unknown part"),
        pytest.param("about =", "abuot =", "unknown key", id="unknown key"),
        pytest.param('requires = ["ninja"]', 'requires = "ninja"', "must be a list, not 'ninja'", id="wrong type"),
        pytest.param("[environment]", "[environmnt]", "environment: missing", id="missing table"),
        pytest.param("pythons =", "pythons :", "the pin file is not TOML", id="not TOML"),
    ],
)
def test_a_broken_pin_file_is_refused(small, old, new, message):
    assert old in SMALL
    small.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(pin_file.PinsError) as error:
        pins.load(small)
    assert message in str(error.value)
    assert str(small) in str(error.value)


def test_every_problem_of_a_pin_file_is_reported_at_once(small):
    small.write_text(SMALL.replace(SHA, "x").replace("about", "abuot"))
    with pytest.raises(pin_file.PinsError, match="the pin file has 6 problems"):
        pins.load(small)


def test_a_missing_pin_file_is_an_error_and_no_traceback(tmp_path):
    with pytest.raises(pin_file.PinsError, match="cannot read the pin file"):
        pins.load(tmp_path / "none.toml")


def test_the_written_file_reads_back_as_the_same_pins(small):
    first = pins.load(small)
    small.write_text(pins.to_toml(first))
    assert pins.load(small) == first
    assert pins.to_toml(pins.load(small)) == small.read_text()


def test_an_update_replaces_what_was_resolved_and_keeps_the_rest(small):
    old = pins.load(small)
    targets = tuple(resolve.targets(old))
    assert [(target.part, target.python) for target in targets] == [(0, "any"), (1, "cp311"), (1, "cp312")]
    newer = pins.PinnedWheel(file="ninja-1.1-py3-none-any.whl", name="ninja", version="1.1", sha256="cd" * 32)
    resolutions = (
        replace(targets[0], wheels=(newer,)),
        replace(targets[1], error="unreachable"),
        replace(targets[2], error="unreachable"),
    )
    new = resolve.updated(old, resolutions)
    assert set(new.wheels) == {newer.file, "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"}
    assert new.pinned_pythons(CPU_CELL) == ("cp311",)
    assert list(pin_file.problems(toml.loads(pins.to_toml(new)))) == []


def test_check_reports_a_good_file():
    result = click.testing.CliRunner().invoke(command, ["check"])
    assert result.exit_code == 0
    assert "all good" in result.output


def test_check_online_names_a_pin_that_the_index_serves_otherwise(small, monkeypatch):
    wheel = pins.load(small).wheels["ninja-1.0-py3-none-any.whl"]
    monkeypatch.setattr(resolve, "verify", lambda *_, **__: resolve.HashCheck(wrong=((wheel, "cd" * 32),)))
    result = click.testing.CliRunner().invoke(command, ["check", "--online", "--file", str(small)])
    assert isinstance(result.exception, DifferenceError)
    assert f"pinned {SHA}" in str(result.exception)
    assert f"index  {'cd' * 32}" in str(result.exception)


def test_update_of_an_unknown_part_names_the_known_ones(small):
    result = click.testing.CliRunner().invoke(command, ["update", "--part", "tolls", "--file", str(small)])
    assert result.exit_code == 2
    assert "there are tools, torch" in result.output


def test_update_with_no_index_in_reach_changes_nothing(small, monkeypatch):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(small.parent / "cache"))
    before = small.read_text()
    result = click.testing.CliRunner().invoke(command, ["update", "--file", str(small)])
    assert isinstance(result.exception, ToolError)
    assert "keeps its pins" in result.output
    assert small.read_text() == before


@pytest.mark.network
def test_update_pins_what_the_index_serves(small):
    result = click.testing.CliRunner().invoke(command, ["update", "--part", "tools", "--file", str(small)])
    assert result.exit_code == 0, result.output
    assert "- ninja-1.0-py3-none-any.whl" in result.output
    ninja = pins.load(small).environment(CPU_CELL)["ninja"]
    assert "manylinux" in ninja.file
    assert result.output.count("+ ninja-") == 1


@pytest.mark.network
def test_check_online_finds_a_pin_that_was_tampered_with(tmp_path, monkeypatch):
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    tools = pins.load()
    part = next(part for part in tools.parts if part.name == "tools")
    table = {"x86_64-linux": {"cp311": part.wheels["x86_64-linux"]["cp311"]}}
    files = table["x86_64-linux"]["cp311"]
    alone = replace(
        tools,
        recipes={"tvm-ffi": (("tools",),)},
        parts=(replace(part, wheels=table),),
        wheels={file: tools.wheels[file] for file in files},
    )
    file = tmp_path / "pins.toml"
    file.write_text(pins.to_toml(alone))
    good = click.testing.CliRunner().invoke(command, ["check", "--online", "--file", str(file)])
    assert good.exit_code == 0, good.output
    ninja = next(wheel for wheel in alone.wheels.values() if wheel.name == "ninja")
    file.write_text(file.read_text().replace(ninja.sha256, SHA))
    bad = click.testing.CliRunner().invoke(command, ["check", "--online", "--file", str(file)])
    assert isinstance(bad.exception, DifferenceError)
    assert ninja.sha256 in str(bad.exception)


@pytest.mark.nix
def test_nix_reads_the_pin_file_as_python_does():
    expression = f"builtins.fromTOML (builtins.readFile {pins.FILE})"
    said = subprocess.check_output(["nix-instantiate", "--eval", "--strict", "--json", "--expr", expression], text=True)
    assert json.loads(said) == toml.loads(pins.FILE.read_text(encoding="utf-8"))
