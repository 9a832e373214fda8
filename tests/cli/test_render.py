"""`builder render`, as a user runs it."""

import shutil
from pathlib import Path

import pytest

from builder.cli import run
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"
RELU = str(EXAMPLES / "relu")


def test_the_cmake_of_a_backend_goes_to_stdout(capsys):
    assert run(["render", RELU, "--backend", "cpu"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("# relu for the CPU.")
    assert "kernel_cpu_component(" in out


def test_a_noarch_project_shows_its_pyproject(capsys):
    assert run(["render", str(EXAMPLES / "silu-and-mul"), "--backend", "cuda"]) == 0
    assert capsys.readouterr().out.startswith("[build-system]")


def test_listing_names_every_backend(capsys):
    assert run(["render", RELU, "--list"]) == 0
    assert capsys.readouterr().out == "cpu\ttorch\ncuda\ttorch\nmetal\ttorch\nrocm\ttorch\nxpu\ttorch\n"


def test_listing_a_backend_names_its_files(capsys):
    assert run(["render", RELU, "--list", "--backend", "cuda"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"CMakeLists.txt", "relu_cuda/relu.cu", "torch-ext/relu/_ops.py"} <= set(lines)
    assert lines == sorted(lines)


def test_several_backends_ask_for_one(capsys):
    assert run(["render", RELU]) == 2
    assert "pass --backend cpu|cuda|metal|rocm|xpu" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--list", "--check", "x"], ["--output", "x", "--check", "x"], ["--force"]])
def test_options_that_exclude_each_other_are_refused(capsys, options):
    assert run(["render", RELU, "--backend", "cpu", *options]) == 2
    assert "--" in capsys.readouterr().err


def test_what_was_written_compares_equal(tmp_path, capsys):
    assert run(["render", RELU, "--backend", "cpu", "--output", str(tmp_path / "out")]) == 0
    assert run(["render", RELU, "--backend", "cpu", "--check", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == ""


def test_a_difference_is_shown_and_exits_with_1(tmp_path, capsys):
    out = tmp_path / "out"
    run(["render", RELU, "--backend", "cpu", "--output", str(out)])
    (out / "pyproject.toml").write_text("changed\n")
    assert run(["render", RELU, "--backend", "cpu", "--check", str(out)]) == 1
    captured = capsys.readouterr()
    assert "--- a/pyproject.toml\n+++ b/pyproject.toml\n" in captured.out
    assert "-changed\n" in captured.out
    assert "help: run 'builder render" in captured.err


def test_a_changed_file_is_in_the_way_until_forced(tmp_path, capsys):
    out = tmp_path / "out"
    run(["render", RELU, "--backend", "cpu", "--output", str(out)])
    (out / "CMakeLists.txt").write_text("mine\n")
    assert run(["render", RELU, "--backend", "cuda", "--output", str(out)]) == 3
    assert (out / "relu_cpu/relu.cpp").exists(), "all or nothing"
    assert "--force" in capsys.readouterr().err
    assert run(["render", RELU, "--backend", "cuda", "--output", str(out), "--force"]) == 0
    assert not (out / "relu_cpu").exists(), "what the earlier render left is gone"


def test_unsafe_flags_need_permission(tmp_path, capsys):
    kernel = shutil.copytree(EXAMPLES / "relu", tmp_path / "relu")
    config = kernel / "build.toml"
    config.write_text(config.read_text().replace("[kernel.relu-cpu]", '[kernel.relu-cpu]\ncxx-flags = ["-fplugin=x"]'))
    assert run(["render", str(kernel), "--backend", "cpu"]) == 2
    assert "build.toml:" in capsys.readouterr().err
    assert run(["render", str(kernel), "--backend", "cpu", "--allow-unsafe-flags"]) == 0
    assert "-fplugin=x" in capsys.readouterr().out


def test_an_id_can_be_given(capsys):
    assert run(["render", RELU, "--backend", "cpu", "--unique-id", "v7"]) == 0
    assert "_relu_cpu_v7" in capsys.readouterr().out


def test_a_folder_in_which_cmake_cannot_build_is_refused_before_anything_is_written(tmp_path, capsys):
    folder = tmp_path / 'with"quote' / "project"
    assert run(["render", RELU, "--backend", "cpu", "--output", str(folder)]) != 0
    err = capsys.readouterr().err
    assert "the path has a double quote" in err
    assert "help: name a folder without one" in err
    assert not folder.exists()


def test_a_project_without_cmake_goes_to_any_folder(tmp_path):
    folder = tmp_path / 'with"quote' / "project"
    silu = str(EXAMPLES / "silu-and-mul")
    assert run(["render", silu, "--backend", "cuda", "--output", str(folder)]) == 0
    assert (folder / "pyproject.toml").is_file()


ALL_EXAMPLES = [str(path.parent) for path in sorted(EXAMPLES.glob("*/build.toml"))]


def test_all_kernels_and_backends_are_written_and_compared_by_one_command(tmp_path, capsys):
    assert run(["render", *ALL_EXAMPLES, "--backend", "all", "--output", str(tmp_path)]) == 0
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")}
    assert {"relu/cpu", "relu/metal", "rmsnorm-stable/cuda", "relu-tvm-ffi/cpu", "silu-and-mul/rocm"} <= written
    assert len(written) == 13
    assert run(["render", *ALL_EXAMPLES, "--backend", "all", "--check", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""


def test_a_project_of_all_is_what_it_is_alone(tmp_path):
    assert run(["render", RELU, "--backend", "all", "--output", str(tmp_path)]) == 0
    assert run(["render", RELU, "--backend", "rocm", "--check", str(tmp_path / "relu/rocm")]) == 0


def test_of_all_projects_those_that_differ_are_named(tmp_path, capsys):
    run(["render", RELU, "--backend", "all", "--output", str(tmp_path)])
    (tmp_path / "relu/xpu/CMakeLists.txt").write_text("mine\n")
    (tmp_path / "relu/cpu/pyproject.toml").unlink()
    assert run(["render", RELU, "--backend", "all", "--check", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "-mine\n" in captured.out
    assert "--- /dev/null\n+++ b/pyproject.toml\n" in captured.out
    assert "relu/cpu" in captured.err
    assert "relu/xpu" in captured.err
    assert "relu/cuda" not in captured.err
    assert f"help: run 'builder render {RELU} --backend all --output {tmp_path}'" in captured.err


def test_two_kernels_of_one_name_are_not_written_over_each_other(tmp_path, capsys):
    twin = shutil.copytree(RELU, tmp_path / "twin")
    assert run(["render", RELU, str(twin), "--backend", "all", "--output", str(tmp_path / "out")]) == 2
    assert "are both 'relu'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("arguments", [[RELU, RELU], [RELU, "--backend", "all"], [RELU, "--backend", "all", "--list"]])
def test_all_backends_are_for_folders_alone(capsys, arguments):
    assert run(["render", *arguments]) == 2
    assert "--backend all" in capsys.readouterr().err


def test_every_source_that_is_not_there_is_named(tmp_path, capsys):
    kernel = Path(shutil.copytree(RELU, tmp_path / "relu"))
    (kernel / "torch-ext/torch_binding.cpp").unlink()
    (kernel / "relu_cpu/relu.cpp").unlink()
    assert run(["render", str(kernel), "--backend", "cpu"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "'torch-ext/torch_binding.cpp' does not exist" in captured.err
    assert "'relu_cpu/relu.cpp' does not exist" in captured.err


def test_a_folder_that_is_not_there_is_an_error_and_no_diff(tmp_path, capsys):
    assert run(["render", RELU, "--backend", "cpu", "--check", str(tmp_path / "nowhere")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert f"'{tmp_path / 'nowhere'}' is not a folder: there is nothing to compare with" in captured.err
    assert f"--backend cpu --output {tmp_path / 'nowhere'}" in captured.err


def test_a_project_of_all_that_is_not_there_is_named_in_a_line(tmp_path, capsys):
    run(["render", RELU, "--backend", "all", "--output", str(tmp_path)])
    shutil.rmtree(tmp_path / "relu/cpu")
    assert run(["render", RELU, "--backend", "all", "--check", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == f"'{tmp_path / 'relu/cpu'}' is not a folder\n"
    assert "relu/cpu" in captured.err
