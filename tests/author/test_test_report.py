"""The report of a run of pytest, read from files that real runs write."""

import subprocess
import sys

import pytest

from builder.author.tests import TestReport
from builder.errors import ToolError


def report(folder, text):
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=out.xml", "test_it.py"]
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return TestReport.read(folder / "out.xml")


def test_tests_that_pass_are_counted(tmp_path):
    found = report(tmp_path, "import pytest\ndef test_a(): pass\n@pytest.mark.skip\ndef test_b(): pass\n")
    assert found == TestReport(passed=1, skipped=1)
    assert str(found) == "1 passed, 1 skipped"


def test_the_first_that_fails_is_named_with_its_message_and_its_line(tmp_path):
    found = report(tmp_path, "def test_a(): pass\ndef test_b():\n    assert 1 == 2\ndef test_c():\n    assert 3 == 4\n")
    assert (found.passed, found.failed) == (1, 2)
    assert str(found) == "2 failed, 1 passed"
    assert found.first == "test_it::test_b: assert 1 == 2\n  --> test_it.py:3"


def test_an_error_before_a_test_is_a_failure(tmp_path):
    text = "import pytest\n@pytest.fixture\ndef x(): raise ValueError('no')\ndef test_a(x): pass\n"
    found = report(tmp_path, text)
    assert found.failed == 1
    assert "ValueError: no" in found.first


def test_a_module_that_cannot_be_imported_is_a_failure(tmp_path):
    found = report(tmp_path, "import nothing_of_this_name\n")
    assert (found.passed, found.failed) == (0, 1)
    assert found.first.startswith("test_it: ModuleNotFoundError: No module named 'nothing_of_this_name'")


def test_what_a_test_prints_cannot_break_the_report(tmp_path):
    found = report(tmp_path, "def test_a():\n    assert '\\x1b]]><x>' == '\\x00'\n")
    assert found.failed == 1


@pytest.mark.parametrize("content", [None, b"", b"<testsuites>"])
def test_a_report_that_is_not_there_or_not_whole_is_said(tmp_path, content):
    if content is not None:
        (tmp_path / "out.xml").write_bytes(content)
    with pytest.raises(ToolError, match=r"^pytest left no report: "):
        TestReport.read(tmp_path / "out.xml")
