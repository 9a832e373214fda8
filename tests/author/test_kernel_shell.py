"""The shell of a kernel: its variables, its commands and its exit code."""

import os
import signal
import sys
from dataclasses import replace

import pytest

from builder.author import kernel_shell
from builder.author.kernel_shell import KernelShell
from builder.errors import ToolError
from tests.given.files import program

VARIABLES = {"PATH": os.environ["PATH"], "BUILDER_SHELL": "torch-cpu"}
SHELL = KernelShell(environ=VARIABLES, framework="torch 2.13.0")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("exit 0", 0, id="done"),
        pytest.param("exit 7", 7, id="its own code"),
        pytest.param("kill -TERM $$", 128 + signal.SIGTERM, id="ended by a signal"),
        pytest.param('test "$BUILDER_SHELL" = torch-cpu', 0, id="has the variables"),
    ],
)
def test_a_command_ends_the_shell_with_its_exit_code(script, code):
    assert kernel_shell.run(["/bin/sh", "-c", script], SHELL) == code


def test_without_a_command_the_users_shell_is_run(tmp_path):
    named = program(tmp_path / "shell", "#!/bin/sh\nexit 5\n")
    assert kernel_shell.run([], replace(SHELL, environ=VARIABLES | {"SHELL": str(named)})) == 5


@pytest.mark.parametrize(
    ("command", "environ", "remedy"),
    [(["/nonexistent/program"], {}, "behind '--'"), ([], {"SHELL": "/nonexistent/shell"}, "set SHELL")],
)
def test_what_cannot_be_started_is_said(command, environ, remedy):
    with pytest.raises(ToolError, match="cannot run '/nonexistent/") as caught:
        kernel_shell.run(command, replace(SHELL, environ=VARIABLES | environ))
    assert remedy in caught.value.help


def test_ctrl_c_is_for_the_command_and_builder_waits_for_its_end():
    interrupt_the_parent_and_go_on = f"import os, signal, time; os.kill({os.getpid()}, signal.SIGINT); time.sleep(0.2)"
    before = signal.getsignal(signal.SIGINT)
    script = f"{interrupt_the_parent_and_go_on}; raise SystemExit(3)"
    # The interpreter takes longer to start than the signal handler of its parent takes to be set.
    assert kernel_shell.run([sys.executable, "-c", script], SHELL) == 3
    assert signal.getsignal(signal.SIGINT) is before
