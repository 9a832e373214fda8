"""Options, fixtures and rules of all tests."""

import importlib.util
import os
from pathlib import Path

import pytest

from builder.store import Store
from tests import needs

_SPEC = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("golden.py"))
_GOLDEN = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_GOLDEN)


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="Rewrite tests/golden with what the code gives now.")


@pytest.fixture
def golden(request):
    """Compare a tree with the one on disk: golden(name, {path: text})."""
    return _GOLDEN.Golden(update=request.config.getoption("--update-golden"))


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    made = Store(tmp_path / "store")
    made.prepare()
    return made


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Fail what is skipped for lack of something that is said to be here."""
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Fail a module that is skipped for lack of something that is said to be here."""
    return _judged((yield))


def _judged(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        problem = needs.refused(report.longrepr[2], os.environ.get("BUILDER_TESTS_REQUIRE", "").split())
        if problem:
            report.outcome, report.longrepr = "failed", problem
    return report
