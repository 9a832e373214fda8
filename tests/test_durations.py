"""The page of how long the tests take."""

import datetime as dt

from tests import durations


def test_the_page_has_each_folder_and_the_slowest_tests_first():
    seconds = {f"tests/render/test_a.py::test_{number}": number / 10 for number in range(40)}
    seconds["tests/test_files.py::test_b"] = 9.0
    page = durations.page(seconds, marks="not slow", today=dt.date(2026, 1, 2))
    assert "on 2026-01-02, " in page
    assert "| 78.0 | 40 | tests/render |\n| 9.0 | 1 | tests/test_files.py |\n" in page
    slowest = [line for line in page.splitlines() if "`" in line and line.startswith("| ")]
    assert slowest[0] == "| 9.0 | `test_files.py::test_b` |"
    assert len(slowest) == durations.SLOWEST
