"""The Nix library and its outputs: skipped cells with their reasons, package sets, shells, flakes and messages."""

import json
import shutil
import subprocess
import time

import pytest

from builder import toml
from tests import needs
from tests.integration import nix_tools
from tests.nix.evaluating import EXAMPLES, KNOWN, NIX, TINY, TINY_CELL, evaluate, library
from tests.paths import ROOT

flake = nix_tools.flake
pytestmark = [pytest.mark.nix, needs.only_with("nix-instantiate")]


def test_what_the_host_cannot_build_has_a_reason():
    skipped = library("skipped", kernel=str(TINY))
    reasons = {variant: why for of_example in skipped.values() for variant, why in of_example.items()}
    assert "has no cuda 12.6" in reasons["torch-stable-abi210-cu126-x86_64-linux"]
    assert "no wheels are pinned" in reasons["torch213-cxx11-rocm72-x86_64-linux"]
    assert "3.13 have pins" in reasons["torch213-cxx11-cu132-x86_64-linux"]
    assert "classic CUDA" in reasons["torch213-cxx11-cu130-x86_64-linux"]
    assert "nobody has built with the pinned wheels of torch 2.14 cpu" in reasons["torch214-cxx11-cpu-x86_64-linux"]
    assert "torch213-cxx11-cpu-x86_64-linux" not in reasons


def test_a_cell_without_pins_says_so_when_it_is_evaluated():
    asked = {"kernel": str(ROOT / "examples/relu"), "variants": ["torch213-cxx11-cu132-x86_64-linux"]}
    with pytest.raises(
        ValueError, match=r"relu torch213-cxx11-cu132-x86_64-linux: no wheels are pinned for torch 2\.13"
    ):
        library("derivations", **asked)


def test_all_cells_of_all_examples_evaluate_in_seconds_of_processor_time():
    import resource  # noqa: PLC0415  not on every system

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    found = library("everything", kernel=str(TINY))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert sum(map(len, found.values())) > 20
    assert used < 10, f"{used:.2f} s of processor time, {time.monotonic() - began:.2f} s"


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
            "[general]\nname = 'x'\nedition = 7\n", "of edition 7, and this builder reads edition 5", id="new"
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
        outputs = (import {ROOT}/builder/nix).outputs;
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


def planned_by_engine(root, variant, **asked):
    """Return the derivation of a cell that the engine plans, with what is asked of it besides."""
    request = {"kernel": str(root), "lock": str(ROOT / "flake.lock"), "set": "host", "system": "x86_64-linux"}
    request |= {"options": {}, "variants": [variant], **asked}
    return evaluate(ROOT / "builder/nix/engine.nix", "plan", request=request)[variant]["drv"]


def test_the_flake_and_the_engine_give_a_cell_one_derivation():
    variant = "torch-stable-abi210-cpu-x86_64-linux"
    root = ROOT / "examples/rmsnorm-stable"
    planned = planned_by_engine(root, variant, options={"load-test": None, "epoch": None})
    flake = library("derivations", kernel=str(root), variants=[variant])
    assert planned == flake[variant]


def test_a_kernel_that_asks_for_the_pinned_compilers_has_them_in_a_flake(tmp_path):
    root = shutil.copytree(TINY, tmp_path / "kernel")
    with (root / "build.toml").open("a") as file:
        file.write('\n[build]\ntoolchain = "pinned"\n')
    drvs = [planned_by_engine(root, TINY_CELL, **{"pinned-compilers": pinned}) for pinned in (True, False)]
    assert drvs[0] != drvs[1]
    assert library("derivations", kernel=str(root), variants=[TINY_CELL]) == {TINY_CELL: drvs[0]}


def test_the_flake_of_this_project_is_read_as_a_flake(flake):
    words = ["--json", *nix_tools.override(flake), f"path:{flake}#checks.x86_64-linux", "--apply", "builtins.attrNames"]
    done = subprocess.run(
        ["nix", "--extra-experimental-features", "nix-command flakes", "eval", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    if "does not allow" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["kernels", "select"]


def test_the_lock_file_names_one_input_and_its_hash():
    locked = json.loads((ROOT / "flake.lock").read_text())["nodes"]
    assert set(locked) == {"root", "nixpkgs"}
    assert locked["nixpkgs"]["locked"]["narHash"].startswith("sha256-")


def test_the_package_set_of_the_host_is_data():
    settings_ = toml.loads((ROOT / "builder/nix/host/host.toml").read_text())
    assert set(settings_["pythons"]) <= set(KNOWN.pythons)
    assert all(rule["reason"] for rule in settings_["skip"])
