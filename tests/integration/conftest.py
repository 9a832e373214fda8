"""What the tests of whole builds share."""

import os

import pytest


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """A store that the tests of a run share: environments are made once."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "store"
