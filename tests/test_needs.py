"""What a test may ask of a machine: a skip says what installs what is missing, and CI takes no such skip."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from builder import resources, toml
from tests import needs

ROOT = Path(__file__).parent.parent
TESTS = """
import pytest
from tests import needs

@needs.only_with("ld.mold")
def test_marked(): pass

def test_asking(): needs.program("zsh")

def test_module(): pytest.importorskip("no_such_module")

@pytest.mark.skip(reason="root may write anywhere")
def test_of_another_reason(): pass
"""


def outcomes(folder, **environ):
    """Run the tests above where nothing is installed; return what pytest said of each."""
    (folder / "nothing").mkdir()
    file = folder / "test_these.py"
    file.write_text(TESTS, encoding="utf-8")
    plugins = ("-p", "no:cacheprovider", "-p", "tests.conftest")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", *plugins, "-c", os.devnull, "--rootdir", folder, file],
        cwd=ROOT,
        env={
            **os.environ,
            "BUILDER_TESTS_REQUIRE": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **environ,
            "PATH": str(folder / "nothing"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def test_a_test_whose_tools_are_not_here_is_skipped_with_the_command_that_installs_them(tmp_path):
    said = outcomes(tmp_path)
    assert re.search(r"SKIPPED .*no ld\.mold \[mold\]: .*mold", said)
    assert re.search(r"SKIPPED .*no zsh \[zsh\]: ", said)
    assert "4 skipped" in said


def test_a_skip_for_lack_of_what_is_said_to_be_here_is_a_failure(tmp_path):
    said = outcomes(tmp_path, BUILDER_TESTS_REQUIRE="mold zsh")
    assert re.search(r"(FAILED|ERROR) .*test_marked", said)
    assert re.search(r"(FAILED|ERROR) .*test_asking", said)
    assert re.search(r"(FAILED|ERROR) .*test_module", said)
    assert "though BUILDER_TESTS_REQUIRE has 'mold'" in said
    assert "1 skipped" in said


def test_a_skip_for_lack_of_another_tool_is_taken(tmp_path):
    said = outcomes(tmp_path, BUILDER_TESTS_REQUIRE="zsh")
    assert "though BUILDER_TESTS_REQUIRE has 'zsh'" in said
    assert re.search(r"SKIPPED .*no ld\.mold \[mold\]: ", said)


@pytest.mark.parametrize("tool", sorted(set(needs.TOOLS.values())))
def test_every_tool_is_one_whose_package_is_known(tool):
    table = toml.loads((resources.DATA / "distributions.toml").read_text(encoding="utf-8"))
    assert "debian" in table["tool"][tool]
