"""`builder shell` on a small real kernel."""

import os
import sys

import pytest

from tests.paths import ROOT

TINY = ROOT / "tests/data/kernels/tiny"
CALL = "import tiny, torch; print(tiny.twice(torch.ones(3)).tolist(), torch.__version__, tiny.__file__)"
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="cells of x86_64-linux"),
]


@pytest.fixture
def shell(builder, tiny):
    """Run the command in the kernel's folder."""

    def run(*arguments, **more):
        return builder("shell", *arguments, cwd=tiny, env={"SHELL": "/bin/sh"}, **more)

    return run


@pytest.mark.slow
def test_a_command_has_the_tools_torch_and_the_built_kernel(shell):
    done = shell("--no-isolation", "--", "python", "-c", CALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[2.0, 2.0, 2.0] 2.")
    assert "/builder-shell-" in done.stdout
    said = shell("--no-isolation", "--", "/bin/sh", "-c", 'echo "$BUILDER_SHELL"; test -x "$CXX" && cmake --version')
    assert said.stdout.splitlines()[0] == VARIANT
    assert "cmake version" in said.stdout


@pytest.mark.slow
def test_a_shell_reads_its_input_and_ends_with_its_code(shell):
    done = shell("--no-isolation", input=f'python -c "{CALL}"\nexit 9\n')
    assert done.returncode == 9, done.stderr
    assert "[2.0, 2.0, 2.0]" in done.stdout
    assert f"{VARIANT}: python has torch 2." in done.stderr
    assert " and tiny; 'exit' leaves the shell" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(("--variant", "torch-nowhere"), 3, "no such cell of this kernel", id="unknown variant"),
        pytest.param(("--variant", "a", "--variant", "b"), 2, "a shell is of one cell", id="two cells"),
        pytest.param(("nowhere",), 2, "nowhere", id="no kernel"),
        pytest.param(("--no-isolation", "--", "/nonexistent"), 4, "cannot run '/nonexistent'", id="no command"),
    ],
)
def test_what_has_no_shell_is_said(shell, arguments, code, message):
    done = shell(*arguments)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.network
def test_a_shell_of_pinned_wheels_has_their_torch_and_nothing_of_the_user(shell, store):
    done = shell("--variant", VARIANT, "--", "python", "-c", f"{CALL}; import sys; print(sys.prefix)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith(f"{store}/")
