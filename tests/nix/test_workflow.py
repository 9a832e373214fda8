"""A public kernel repository changes one input of its flake, and has all outputs that its workflows use."""

import json
import shutil
import subprocess

import pytest

from tests import needs
from tests.nix.evaluating import NIX, evaluate
from tests.paths import ROOT

pytestmark = [pytest.mark.nix, needs.only_with("nix-instantiate")]

RELU = ROOT / "examples/relu"


@pytest.fixture
def kernel(tmp_path):
    """Give an example as a public repository has it: with tests, a card, and its repository on the hub."""
    folder = shutil.copytree(RELU, tmp_path / "relu")
    config = (folder / "build.toml").read_text()
    (folder / "build.toml").write_text(config + '\n[general.hub]\nrepo-id = "team/relu"\n')
    (folder / "CARD.md").write_text("# relu\n")
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests/test_relu.py").write_text("def test_nothing(): pass\n")
    return folder


def workflow(kernel):
    return evaluate(NIX / "workflow.nix", asked={"kernel": str(kernel)})


def test_every_output_that_the_workflows_name_is_there(kernel):
    found = workflow(kernel)["x86_64-linux"]
    assert {"cpu", "cuda", "rocm"} <= set(found["backendBundle"])
    assert found["backendCi"] == found["backendBundle"]
    assert set(found["ciTests"]) == set(found["variants"])
    wanted = {"bundle", "default", "redistributable", "ci", "ci-test", "build-and-copy", "build-and-upload", "kernels"}
    assert wanted <= set(found["packages"])
    assert found["evaluated"]


def test_packages_are_packages_so_that_the_flake_can_be_shown(kernel):
    assert all(found["derivations"] for found in workflow(kernel).values())


def test_what_is_built_where_nothing_is_named_is_the_layout_of_the_hub_with_its_commit(kernel):
    found = workflow(kernel)["x86_64-linux"]
    assert found["layout"]
    assert found["commit"] == "0123456789012345678901234567890123456789"


def test_ci_builds_one_cell_of_each_backend_and_only_what_the_system_can(kernel):
    found = workflow(kernel)
    assert {backend: len(cells) for backend, cells in found["x86_64-linux"]["cells"].items()} == dict.fromkeys(
        found["x86_64-linux"]["backendCi"], 1
    )
    assert "rocm" not in found["aarch64-linux"]["backendCi"]


def test_a_kernel_without_tests_or_a_repository_has_no_outputs_of_them(tmp_path):
    folder = shutil.copytree(RELU, tmp_path / "relu", ignore=shutil.ignore_patterns("tests"))
    found = workflow(folder)["x86_64-linux"]
    assert not {"ci-test", "build-and-upload"} & set(found["packages"])
    assert found["ciTests"] == []


def test_a_name_that_is_a_command_of_a_shell_is_refused(kernel):
    config = (kernel / "build.toml").read_text()
    (kernel / "build.toml").write_text(config.replace("team/relu", "team/$(touch x)"))
    with pytest.raises(ValueError, match=r"general\.hub\.repo-id of relu is no name of the hub"):
        workflow(kernel)


def test_the_command_is_an_overlay_of_nixpkgs():
    expression = f"""
      let
        flake = (import {ROOT}/builder/nix).outputs.flake {{ examples = {ROOT}/examples; selected = {{ }}; }}
          {{ self = {{ }}; nixpkgs.legacyPackages = {{ }}; }};
        packages = flake.overlays.default (import {NIX}/nixpkgs.nix {{ }}) {{ }};
      in builtins.isString packages.kernel-wheel-builder.drvPath
    """
    done = subprocess.run(
        ["nix-instantiate", "--eval", "--strict", "--json", "--expr", expression],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) is True


def test_toolkits_of_nixpkgs_are_one_prefix_with_the_compiler_that_they_take():
    expression = f"""
      let set = (import {ROOT}/builder/nix).nixpkgs {{ pkgs = import {NIX}/nixpkgs.nix {{ }}; }};
      in set.toolkits
    """
    done = subprocess.run(
        ["nix-instantiate", "--eval", "--strict", "--json", "--expr", expression],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert set(found) == {"cuda-12.6", "rocm-7.1"}
    assert found["cuda-12.6"]["CUDA_HOME"].endswith("-cuda-merged")
    assert found["cuda-12.6"]["CXX"].endswith("-gcc-wrapper-13/bin/g++")
    assert found["rocm-7.1"]["ROCM_PATH"].endswith("-rocm-7.1.1")
