"""What a shell gets when it asks for completions."""

import os
import subprocess
import sys

import pytest

from builder import cli
from builder.cli import group


def complete(*words):
    """Return what the script of bash is answered when the last of `words` is completed."""
    script = "from builder.cli import main; main()"
    asked = {"_BUILDER_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | asked, capture_output=True, text=True, check=True
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_builder(shell, capsys):
    assert group.run(["completion", shell]) == 0
    assert f"_BUILDER_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_a_shell_that_is_not_known_is_refused(capsys):
    assert group.run(["completion", "tcsh"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err


def test_commands_are_completed():
    assert complete("builder", "b") == sorted(name for name in cli.COMMANDS if name.startswith("b"))


def test_options_and_their_values_are_completed():
    assert "--backend" in complete("builder", "build", "--ba")
    assert complete("builder", "build", "--backend", "cu") == ["cuda"]


def test_bash_itself_completes_a_command(tmp_path):
    program = tmp_path / "builder"
    program.write_text(f"#!{sys.executable}\nfrom builder.cli import main\nmain()\n")
    program.chmod(0o755)
    # What `complete -F` calls, as bash would when Tab is pressed behind "builder doc".
    script = (
        'eval "$(builder completion bash)"; COMP_WORDS=(builder doc); COMP_CWORD=1; '
        '_builder_completion builder doc builder; echo "${COMPREPLY[@]}"'
    )
    variables = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(["bash", "--norc", "-c", script], env=variables, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["doctor"], done.stderr
