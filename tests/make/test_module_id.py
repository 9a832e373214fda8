"""The toolkit that names kernels without paths, with programs that only say what they were given."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from builder.make.reproducible import module_id_farm
from tests.given.files import program

# What nvcc 12.4 and 13.0 hand to cudafe++, with another folder.
OF_12_4 = (
    *("--c++17", "--gnu_version=120200", "--display_error_number", "--orig_src_file_name", "{source}"),
    *("--orig_src_path_name", "{source}", "--allow_managed", "--m64", "--parse_templates"),
    *("--gen_c_file_name", "/tmp/tmpxft_1-6_twice.cudafe1.cpp", "--stub_file_name", "tmpxft_1-6_twice.cudafe1.stub.c"),
    *("--gen_module_id_file", "--module_id_file_name", "/tmp/tmpxft_1-4_twice.module_id", "/tmp/tmpxft_1-5_twice.ii"),
)
OF_13_0 = (
    *("--c++20", "--static-host-stub", "--device-hidden-visibility", "--gnu_version=120200", "--display_error_number"),
    *("--orig_src_file_name", "{source}", "--orig_src_path_name", "{source}", "--allow_managed", "--m64"),
    *("--gen_module_id_file", "--module_id_file_name", "/tmp/tmpxft_1-4_twice.module_id", "/tmp/tmpxft_1-5_twice.ii"),
)
SAYS = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv))\n"


@pytest.fixture
def root(tmp_path):
    """Return the toolkit of which links are made."""
    root = tmp_path / "cuda 13"
    for name in ("bin/nvcc", "bin/cudafe++", "bin/ptxas"):
        program(root / name, SAYS)
    (root / "include").mkdir()
    (root / "nvvm/bin").mkdir(parents=True)
    return root


def handed_on(farm, *arguments):
    done = subprocess.run([farm / "bin/cudafe++", *arguments], capture_output=True, text=True, check=True)
    program, *rest = json.loads(done.stdout)
    return program, rest


@pytest.mark.parametrize("line", [pytest.param(OF_12_4, id="12.4"), pytest.param(OF_13_0, id="13.0")])
@pytest.mark.parametrize("name", ["scratch", "a folder/with $HOME, 'quotes' and *"])
def test_the_path_that_a_module_id_is_made_of_loses_its_folder_and_nothing_else_does(tmp_path, root, line, name):
    folder = tmp_path / name
    folder.mkdir(parents=True)
    farm = module_id_farm(root, folder / "cuda", folder=folder)
    source = f"{folder}/src/csrc/twice.cu"
    given = [argument.format(source=source) for argument in line]
    program, arguments = handed_on(farm, *given)
    assert program == str(root / "bin/cudafe++")
    at = given.index("--orig_src_path_name") + 1
    assert arguments == [*given[:at], "src/csrc/twice.cu", *given[at + 1 :]]


def test_what_lies_elsewhere_keeps_its_path(tmp_path, root):
    folder = tmp_path / "scratch"
    folder.mkdir()
    farm = module_id_farm(root, folder / "cuda", folder=folder)
    # The second begins like the folder, and is not in it; the third is an empty argument, the fourth the last one.
    for path in ("/usr/include/twice.cu", f"{folder}-other/twice.cu", ""):
        assert handed_on(farm, "--orig_src_path_name", path, "x.ii")[1] == ["--orig_src_path_name", path, "x.ii"]
    assert handed_on(farm, "x.ii", "--orig_src_path_name")[1] == ["x.ii", "--orig_src_path_name"]


def test_a_folder_through_a_link_is_taken_off_as_nvcc_says_it(tmp_path, root):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    farm = module_id_farm(root, tmp_path / "link/cuda", folder=tmp_path / "link")
    _, arguments = handed_on(farm, "--orig_src_path_name", f"{tmp_path}/real/twice.cu")
    assert arguments == ["--orig_src_path_name", "twice.cu"]


def test_an_error_of_the_real_program_is_handed_on(tmp_path, root):
    (root / "bin/cudafe++").write_text("#!/bin/sh\necho 'twice.cu(3): error' >&2\nexit 2\n")
    farm = module_id_farm(root, tmp_path / "farm", folder=tmp_path)
    done = subprocess.run([farm / "bin/cudafe++"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "twice.cu(3): error\n")


def test_nvcc_is_a_copy_that_finds_this_cudafe_and_the_rest_are_links(tmp_path, root):
    farm = module_id_farm(root, tmp_path / "farm", folder=tmp_path)
    found = {str(path.relative_to(farm)): path.is_symlink() for path in (*farm.iterdir(), *(farm / "bin").iterdir())}
    links = {"bin/ptxas": True, "include": True, "nvvm": True}
    assert found == {"bin": False, "bin/nvcc": False, "bin/cudafe++": False, **links}
    assert (farm / "bin/nvcc").read_bytes() == (root / "bin/nvcc").read_bytes()
    assert os.access(farm / "bin/nvcc", os.X_OK)
    assert Path(farm / "nvvm").resolve() == root / "nvvm"


def test_a_toolkit_that_is_a_farm_already_is_made_again(tmp_path, root):
    """A build that was stopped goes on in its folder, in which the farm of before lies."""
    first = module_id_farm(root, tmp_path / "farm", folder=tmp_path)
    (root / "bin/ptxas").unlink()
    again = module_id_farm(root, tmp_path / "farm", folder=tmp_path)
    assert first == again
    assert not (again / "bin/ptxas").exists()
