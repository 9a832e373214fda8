"""Options and fixtures of all tests."""

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("golden.py"))
_GOLDEN = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_GOLDEN)


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="Rewrite tests/golden with what the code gives now.")


@pytest.fixture
def golden(request):
    """Compare a tree with the one on disk: golden(name, {path: text})."""
    return _GOLDEN.Golden(update=request.config.getoption("--update-golden"))
