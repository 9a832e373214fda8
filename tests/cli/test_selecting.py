"""What cells a command is about: every command that takes cells is asked the same, and gives the same answer."""

import json

import pytest

from builder import kernel as kernels
from builder import toolchain
from builder.cli import run
from builder.matrix.selection import Scope
from builder.plan import choosing
from tests.cli.folders import write
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"
STABLE = str(EXAMPLES / "rmsnorm-stable")


def answers(commands, kernel, *arguments, capsys):
    """Return the exit codes and errors of several commands, which should be one."""
    found = {(run([*command.split(), kernel, *arguments]), capsys.readouterr().err) for command in commands}
    assert len(found) == 1, found
    return found.pop()


@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(["build", "why", "test", "matrix", "matrix --format github", "matrix --format gitlab"], id="all"),
        pytest.param([f"{name} --variant torch-neuron" for name in ("build", "why", "test", "repro")], id="by name"),
        pytest.param(["build --engine nix", "build --all", "matrix --all", "why --all"], id="with --all"),
    ],
)
def test_commands_agree_about_a_kernel_whose_backends_have_no_row(commands, tmp_path, capsys):
    code, said = answers([*commands, "matrix"], str(write(tmp_path, "noarch", "neuron")), capsys=capsys)
    assert code == 3
    assert said.startswith("error: no cell of 'noarch' is selected: there is nothing to build\n  neuron: this part")
    assert "help: `builder render --backend neuron --output PROJECT` and `pip wheel PROJECT` make its wheel" in said


@pytest.mark.parametrize("backend", ["cann", "neuron"])
def test_commands_agree_about_a_backend_without_a_row(backend, tmp_path, capsys):
    kernel = str(write(tmp_path, "noarch", "cann", "cpu", "neuron", "tpu"))
    code, said = answers(
        ["build", "matrix", "build --set all", "matrix --set all"], kernel, "--backend", backend, capsys=capsys
    )
    assert code == 3
    how = f"`builder render --backend {backend} --output PROJECT` and `pip wheel PROJECT` make its wheel"
    assert how in said
    run(["check", kernel])
    assert how in capsys.readouterr().out
    assert run(["render", kernel, "--backend", backend, "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out/pyproject.toml").is_file()


def test_commands_agree_about_a_backend_that_the_kernel_lacks(capsys):
    code, said = answers(["build", "matrix", "render"], STABLE, "--backend", "metal", capsys=capsys)
    assert code == 2
    assert said.startswith("error: 'rmsnorm-stable' has no backend 'metal': it has cpu, cuda")


def test_commands_agree_about_a_backend_that_nobody_knows(capsys):
    run(["build", STABLE, "--backend", "cude"])
    assert "did you mean 'cuda'?" in capsys.readouterr().err
    run(["matrix", STABLE, "--backend", "cude"])
    assert "did you mean 'cuda'?" in capsys.readouterr().err


def test_commands_agree_about_a_variant_that_the_kernel_lacks(capsys):
    wrong = "torch-stable-abi210-cpu-x86_64-linx"
    code, said = answers(["build", "why", "test", "repro"], STABLE, "--variant", wrong, capsys=capsys)
    assert code == 3
    assert said == (
        f"error: '{wrong}': no such cell of this kernel\n  help: did you mean 'torch-stable-abi210-cpu-x86_64-linux'?\n"
    )


def test_commands_agree_that_cells_out_of_bounds_are_none(tmp_path, capsys):
    text = (EXAMPLES / "relu/build.toml").read_text(encoding="utf-8")
    (tmp_path / "build.toml").write_text(text.replace("[torch]", '[torch]\nminver = "2.20"'), encoding="utf-8")
    code, said = answers(["build", "why", "matrix"], str(tmp_path), capsys=capsys)
    assert code == 3
    assert "torch 2.13, cpu, x86_64-linux: torch 2.13 is below minver 2.20, build.toml:" in said


def test_a_backend_whose_cells_are_not_of_a_release_is_built_with_all(tmp_path, capsys):
    kernel = str(write(tmp_path, "noarch", "cann", "cpu", "tpu"))
    code, said = answers(["build", "matrix"], kernel, "--backend", "tpu", capsys=capsys)
    assert code == 3
    assert "its cells are not part of a release: pass --all" in said
    assert run(["build", kernel, "--backend", "tpu", "--all", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("torch-tpu: ")


def test_a_noarch_wheel_is_built_once_and_not_for_each_system():
    cells = choosing.cells(kernels.load(EXAMPLES / "silu-and-mul"), Scope())
    assert len({cell.variant for cell in cells}) == len(cells) == 4
    assert next(cell for cell in cells if cell.variant == "torch-cpu").system == toolchain.system()


def test_a_cell_of_another_set_may_be_named():
    kernel = kernels.load(EXAMPLES / "relu")
    (preview,) = choosing.cells(kernel, Scope(sets=("preview",)))[:1]
    assert choosing.cells(kernel, Scope(), variants=(preview.variant,)) == (preview,)


def test_a_stable_cell_that_is_named_is_the_one_of_the_release():
    loaded = kernels.load(EXAMPLES / "rmsnorm-stable")
    released = choosing.cells(loaded, Scope())
    for cell in released:
        assert choosing.cells(loaded, Scope(), variants=(cell.variant,)) == (cell,)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["--archs", "sm_90"], 2, "'sm_90' is not an architecture of a GPU: write '9.0'", id="nvcc"),
        pytest.param(["--archs", "9.0,gfx942"], 2, "are not for one build", id="mixed"),
        pytest.param(["--archs", "gfx942"], 2, "error: gfx942 is of ROCm, and what is to be built has", id="ROCm"),
        pytest.param(["--archs", "9.0", "--backend", "cpu"], 2, "it is for the CPU", id="the CPU"),
        pytest.param(["--archs", "9.0", "--variant", "{cpu}"], 2, "it is for the CPU", id="a cell of the CPU"),
        pytest.param(["--archs", "9.0", "--backend", "metal"], 2, "has no backend 'metal'", id="no backend of it"),
    ],
)
def test_gpus_that_a_kernel_has_no_code_for_are_refused(arguments, code, said, capsys):
    cpu = f"torch-stable-abi210-cpu-{toolchain.system()}"
    for command in ("build", "build --dry-run"):
        assert run([*command.split(), STABLE, *(each.format(cpu=cpu) for each in arguments)]) == code
        assert said in capsys.readouterr().err


def test_gpus_choose_the_cells_of_their_backend(capsys):
    assert run(["build", STABLE, "--archs", "9.0,19.0", "--dry-run"]) == 0
    told = capsys.readouterr()
    assert {line.split("-cu")[0] for line in told.out.splitlines()} == {"torch-stable-abi210"}
    assert told.err.startswith("note: quick build only for 9.0, 19.0: its wheels are not for release\n")
    assert "warning: component 'rmsnorm-cuda' has no code for 19.0 with CUDA 13.0\n" in told.err


def test_cells_whose_toolkit_does_not_know_the_gpu_are_skipped_with_the_reason(capsys):
    assert run(["build", STABLE, "--archs", "10.0", "--dry-run"]) == 0
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines() if "x86_64" in line)
    old, new = (lines[f"torch-stable-abi210-cu{number}-x86_64-linux"] for number in ("126", "130"))
    assert old.startswith("cannot be built here (")
    assert "CUDA 12.6 does not compile it" in old
    assert "CUDA 13.0 does not compile it" not in new


def test_a_kernel_of_python_alone_has_no_quick_build(tmp_path, capsys):
    assert run(["build", str(write(tmp_path, "noarch", "cuda")), "--archs", "9.0", "--dry-run"]) == 2
    assert "help: leave out --archs, which is for components of CUDA and ROCm" in capsys.readouterr().err


def test_gpus_of_a_machine_that_has_none_are_said_to_be_missing(monkeypatch, capsys):
    monkeypatch.setattr("builder.toolchain.this_machine.cuda_gpus", lambda _environ: ())
    assert run(["build", STABLE, "--archs", "native", "--dry-run"]) == 4
    assert "error: no GPU for CUDA is found on this machine\n  help: name what to build for" in capsys.readouterr().err


def test_gpus_of_a_machine_are_what_is_built_for(monkeypatch, capsys):
    monkeypatch.setattr("builder.toolchain.this_machine.cuda_gpus", lambda _environ: ("8.9",))
    assert run(["build", STABLE, "--archs", "native", "--dry-run"]) == 0
    assert "note: quick build only for 8.9: its" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["matrix", "build --dry-run"])
@pytest.mark.parametrize(
    ("torch", "said"),
    [("2.9", "no row of the matrix has torch 2.9: it has 2.11, "), ("2.15.0", "'2.15.0' is not a version: write")],
)
def test_a_torch_that_no_row_has_is_refused(capsys, command, torch, said):
    assert run([*command.split(), STABLE, "--torch", torch]) == 2
    assert said in capsys.readouterr().err


def test_a_torch_selects_its_cells(capsys):
    assert run(["matrix", STABLE, "--torch", "2.13", "--torch", "2.14", "--format", "json"]) == 0
    assert {cell["torch"] for cell in json.loads(capsys.readouterr().out)["cells"]} == {"2.13", "2.14"}
