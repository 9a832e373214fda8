import errno
import os
import subprocess
import sys
from unittest import mock

import pytest

from builder import __version__, cli
from builder.cli import group
from builder.errors import BugError
from tests.given.processes import builder


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


def test_building_imports_what_reads_mail_or_talks_tls_only_where_it_is_needed():
    script = "import sys\nfrom builder.cli import build\nfrom builder.environment import indexes\n"
    script += "indexes.read({})\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"ssl", "email.parser", "importlib.metadata"} & set(loaded)


def test_python_looks_for_no_garbage_when_a_command_has_ended():
    script = "import atexit, gc\natexit.register(lambda: print(gc.get_freeze_count()))\n"
    script += "from builder import cli\ncli.main(['completion', 'bash'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) > 1000


def test_version_is_the_package_version():
    assert builder("--version").stdout == f"builder, version {__version__}\n"


def test_a_misspelt_command_gets_the_nearest_one():
    done = builder("biuld")
    assert done.returncode == 2
    assert "Did you mean 'build'?" in done.stderr


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--varient", "No such option '--varient'. Did you mean '--variant'?"),
        ("--experimnt", "No such option '--experimnt'."),
    ],
)
def test_a_misspelt_option_gets_the_nearest_one_that_the_help_has(option, said, capsys):
    assert group.run(["build", option, "x"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"Error: {said}"


def test_a_missing_config_is_said_without_a_traceback(tmp_path):
    done = builder("build", str(tmp_path))
    assert done.returncode == 2
    assert "build.toml" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("size", ["0", "eight", "8X", "-1G"])
def test_a_memory_that_is_no_size_is_refused(size):
    done = builder("build", "examples/relu", f"--memory={size}")
    assert done.returncode == 2
    assert "is not a size" in done.stderr


@pytest.mark.parametrize("error", [KeyError("x.dist-info/METADATA"), ChildProcessError("it failed"), OSError()])
def test_a_mistake_of_this_program_is_called_one_and_says_where_to_report_it(monkeypatch, capsys, error):
    monkeypatch.setattr(group.cli, "main", mock.Mock(side_effect=error))
    assert cli.run(["matrix"]) == 70
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert f"error: this is a mistake of builder itself: {type(error).__name__}" in said
    assert "help: report it " in said
    assert "disk" not in said


def test_a_mistake_elsewhere_is_reported_without_a_traceback_of_its_own(monkeypatch, capsys):
    error = BugError("the process that judged the wheel failed")
    monkeypatch.setattr(group.cli, "main", mock.Mock(side_effect=error))
    assert cli.run(["matrix"]) == 70
    said = capsys.readouterr().err
    assert said.startswith("error: the process that judged the wheel failed\n  help: report it ")
    assert said.count("\n") == 2


@pytest.mark.parametrize(
    ("number", "message"),
    [
        pytest.param(errno.ENOSPC, "cannot write: No space left on device\n  help: free the disk", id="no room"),
        pytest.param(errno.EMFILE, "the system refused what is needed: Too many open files", id="too much is open"),
    ],
)
def test_the_disk_is_full_only_where_the_system_says_so(monkeypatch, capsys, number, message):
    monkeypatch.setattr(group, "_drop_output", lambda: None)
    monkeypatch.setattr(group.cli, "main", mock.Mock(side_effect=OSError(number, os.strerror(number))))
    assert cli.run(["matrix"]) == 4
    assert capsys.readouterr().err == f"error: {message}\n"
