import subprocess
import sys
from pathlib import Path

import pytest

from builder import __version__, cli, toolchain
from builder import kernel as kernels
from builder.cli import build, group


def builder(*arguments, stdin=None):
    return subprocess.run(
        [sys.executable, "-m", "builder", *arguments], capture_output=True, text=True, check=False, input=stdin
    )


def test_help_names_every_command():
    done = builder("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in cli.COMMANDS)


def test_help_without_a_library_is_the_help_of_the_group(capsys):
    assert group.run(["--help"]) == 0
    assert capsys.readouterr().out == cli.help_text()


@pytest.mark.parametrize("name", sorted(cli.COMMANDS))
def test_every_command_has_help(name, capsys):
    assert group.run([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"Usage: builder {name} ")


def test_help_imports_no_library():
    script = "import sys\nfrom builder import cli\ncli.help_text()\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"click", "jinja2", "rich", "packaging"} & set(loaded)


def test_version_is_the_package_version():
    assert builder("--version").stdout == f"builder, version {__version__}\n"


def test_a_misspelt_command_gets_the_nearest_one():
    done = builder("biuld")
    assert done.returncode == 2
    assert "Did you mean 'build'?" in done.stderr


def test_a_missing_config_is_said_without_a_traceback(tmp_path):
    done = builder("build", str(tmp_path))
    assert done.returncode == 2
    assert "build.toml" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_variant_gets_the_nearest_ones():
    done = builder("build", "examples/relu", "--variant", "torch213-cxx11-cpu-x86_64-linx")
    assert done.returncode == 3
    assert "did you mean 'torch213-cxx11-cpu-x86_64-linux'" in done.stderr


def test_a_backend_that_the_kernel_lacks_is_named():
    done = builder("build", "examples/rmsnorm-stable", "--backend", "xpu")
    assert done.returncode == 2
    assert "has no backend 'xpu'" in done.stderr


@pytest.mark.parametrize("size", ["0", "eight", "8X", "-1G"])
def test_a_memory_that_is_no_size_is_refused(size):
    done = builder("build", "examples/relu", f"--memory={size}")
    assert done.returncode == 2
    assert "is not a size" in done.stderr


def test_a_noarch_wheel_is_planned_once_and_not_for_each_system():
    kernel = kernels.load(Path("examples/silu-and-mul"))
    cells = build.choose(kernel, variants=(), backends=(), sets="release", unbundled=False)
    assert len({cell.variant for cell in cells}) == len(cells) == 4
    assert next(cell for cell in cells if cell.variant == "torch-cpu").system == toolchain.system()


NOARCH = """
[general]
name = "noarch"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cann", "cpu", "neuron", "tpu"]

[torch-noarch]
"""


@pytest.mark.parametrize("backend", ["cann", "neuron"])
def test_a_backend_without_a_row_is_said_alike_by_build_matrix_and_check(backend, tmp_path):
    (tmp_path / "build.toml").write_text(NOARCH, encoding="utf-8")
    (tmp_path / "torch-ext/noarch").mkdir(parents=True)
    (tmp_path / "torch-ext/noarch/__init__.py").write_text("", encoding="utf-8")
    how = f"`builder render --backend {backend} --output PROJECT` and `pip wheel PROJECT` make its wheel"
    for command in (["build"], ["matrix"]):
        done = builder(*command, str(tmp_path), "--backend", backend)
        assert done.returncode == 3
        assert how in done.stderr
    assert how in builder("check", str(tmp_path)).stdout
    assert builder("render", str(tmp_path), "--backend", backend, "--output", str(tmp_path / "out")).returncode == 0
    assert (tmp_path / "out/pyproject.toml").is_file()


def test_a_backend_whose_cells_are_not_of_a_release_is_built_with_all(tmp_path):
    (tmp_path / "build.toml").write_text(NOARCH, encoding="utf-8")
    done = builder("build", str(tmp_path), "--backend", "tpu")
    assert done.returncode == 3
    assert "not part of a release: pass --all" in done.stderr
