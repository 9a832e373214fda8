"""What a shell gets when it asks for completions."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from unittest import mock

import pytest
from click.shell_completion import get_completion_class

from builder import cli, toolchain
from builder.cli import group
from tests import needs
from tests.paths import ROOT


def complete(*words):
    """Return what the script of bash is answered when the last of `words` is completed."""
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    with mock.patch.dict(os.environ, asked):
        answer = get_completion_class("bash")(group.cli, {}, "builder", "_BUILDER_COMPLETE").complete()
    return [line.partition(",")[2] for line in answer.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_the_script_of_each_shell_asks_builder(shell, capsys):
    if get_completion_class(shell) is None:
        pytest.skip(f"this click has no script for {shell}")
    assert group.run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_BUILDER_COMPLETE" in script
    assert f"{shell}_complete" in script


def test_a_shell_that_is_not_known_is_refused(capsys):
    assert group.run(["completion", "tcsh"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err


def test_commands_are_completed():
    assert complete("builder", "b") == sorted(name for name in cli.COMMANDS if name.startswith("b"))


def test_options_and_their_values_are_completed():
    assert "--backend" in complete("builder", "build", "--ba")
    assert complete("builder", "build", "--backend", "cu") == ["cuda"]


EXAMPLES = ROOT / "examples"


def test_variants_are_those_of_the_kernel_in_the_folder(monkeypatch):
    monkeypatch.chdir(EXAMPLES / "rmsnorm-stable")
    found = complete("builder", "build", "--variant", "torch-stable-abi")
    assert found
    assert all(name.startswith("torch-stable-abi210-") for name in found)


@pytest.mark.parametrize("command", ["build", "test", "why", "repro"])
def test_variants_are_those_of_the_kernel_that_the_line_names(command, monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    found = complete("builder", command, "examples/relu", "--variant", "torch213-cxx11-c")
    system = toolchain.system()
    assert all(name.endswith(system) for name in found)
    if system == "x86_64-linux":
        assert {"torch213-cxx11-cpu-x86_64-linux", "torch213-cxx11-cu130-x86_64-linux"} <= set(found)


def test_a_variant_that_is_given_is_not_offered_again(monkeypatch):
    monkeypatch.chdir(EXAMPLES / "silu-and-mul")
    assert "torch-cpu" in complete("builder", "build", "--variant", "torch-c")
    assert "torch-cpu" not in complete("builder", "build", "--variant", "torch-cpu", "--variant", "torch-c")


@pytest.mark.parametrize("command", ["build", "matrix"])
def test_backends_are_those_of_the_kernel(command, monkeypatch):
    monkeypatch.chdir(EXAMPLES / "rmsnorm-stable")
    assert complete("builder", command, "--backend", "") == ["cpu", "cuda"]


def test_all_is_a_backend_where_the_option_takes_it(monkeypatch):
    monkeypatch.chdir(EXAMPLES)
    assert complete("builder", "render", "rmsnorm-stable", "--backend", "") == ["cpu", "cuda", "all"]


def test_without_a_kernel_there_are_no_variants_and_all_backends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert complete("builder", "build", "--variant", "") == []
    assert {"cpu", "tpu"} <= set(complete("builder", "build", "--backend", ""))


@pytest.mark.parametrize("text", ["", "[general]\nname = 3\n", "\0", "["])
def test_a_kernel_with_mistakes_says_nothing(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build.toml").write_text(text)
    assert complete("builder", "build", "--variant", "") == []


def test_kernels_are_completed_before_other_folders(monkeypatch):
    monkeypatch.chdir(EXAMPLES.parent)
    assert complete("builder", "build", "examples/r") == [
        "examples/relu",
        "examples/relu-tvm-ffi",
        "examples/rmsnorm-stable",
    ]
    assert complete("builder", "check", "exa") == ["exa"]  # of type `dir`: the shell looks


def test_codes_and_formats_are_completed():
    assert "B030" in complete("builder", "check", "--explain", "B03")
    assert complete("builder", "matrix", "--format", "git") == ["github", "gitlab"]


SETTINGS = {
    "bash": (".bashrc", 'eval "$(builder completion bash)"\n', ["--noprofile", "-i"]),
    "zsh": (".zshrc", 'autoload -U compinit && compinit -D\neval "$(builder completion zsh)"\n', ["-d", "-i"]),
    "fish": (".config/fish/config.fish", "builder completion fish | source\n", ["-i"]),
}
"""What the help of `builder completion` tells people to write, and where; and how the shell is started."""


@pytest.fixture
def press(tmp_path):
    """Return a function that types into a real shell, in a terminal, and says what the shell then ran."""
    ran = tmp_path / "ran"
    program = tmp_path / "bin" / "builder"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        "if '_BUILDER_COMPLETE' in os.environ or sys.argv[1:2] == ['completion']:\n"
        "    from builder.cli import main\n"
        "    main()\n"
        f"open({str(ran)!r}, 'w').write('\\n'.join(sys.argv[1:]))\n"
    )
    program.chmod(0o755)

    def press(shell, keys, folder):
        file, text, options = SETTINGS[shell]
        settings = tmp_path / "home" / file
        settings.parent.mkdir(parents=True)
        settings.write_text(text)
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
        variables = kept | {
            "HOME": str(tmp_path / "home"),
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "TERM": "dumb" if shell != "fish" else "xterm",
        }
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", shutil.which(shell), *options],  # fish wants a terminal that controls it
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=variables,
            cwd=folder,
        )
        os.close(theirs)
        try:
            os.write(ours, f"{keys}\n".encode())
            seen, end = b"", time.monotonic() + 60
            while not (ran.is_file() and ran.stat().st_size) and time.monotonic() < end:
                if select.select([ours], [], [], 0.1)[0]:  # a shell must not wait for a reader
                    try:
                        seen += os.read(ours, 65536)
                    except OSError:  # the shell has ended
                        break
        finally:
            process.kill()
            process.wait()
            os.close(ours)
        assert ran.is_file(), seen.decode(errors="replace")
        return ran.read_text().splitlines()

    return press


@pytest.mark.skipif(toolchain.system() != "x86_64-linux", reason="cells of x86_64-linux")
@pytest.mark.parametrize(
    ("keys", "words"),
    [
        pytest.param("builder doct\t", ["doctor"], id="command", marks=pytest.mark.slow),
        pytest.param("builder build --backend cu\t", ["build", "--backend", "cuda"], id="backend"),
        pytest.param(
            "builder build --variant torch213-cxx11-cp\t",
            ["build", "--variant", "torch213-cxx11-cpu-x86_64-linux"],
            id="variant",
            marks=pytest.mark.slow,
        ),
        pytest.param("builder check ../rm\t", ["check", "../rmsnorm-stable"], id="kernel", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("shell", [pytest.param(name, marks=needs.only_with(name, "setsid")) for name in SETTINGS])
def test_a_shell_completes_when_tab_is_pressed(shell, keys, words, press):
    assert press(shell, keys, EXAMPLES / "relu") == words
