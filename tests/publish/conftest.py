"""A folder of wheels, and the index of it."""

import pytest

from builder.cli import run


@pytest.fixture
def dist(tmp_path):
    """Make an empty folder for wheels."""
    folder = tmp_path / "dist"
    folder.mkdir()
    return folder


@pytest.fixture
def indexed(dist, tmp_path):
    """Make the index of the wheels there are, or add them to it, and return its folder."""

    def made(*options, output="site"):
        assert run(["index", str(dist), "--output", str(tmp_path / output), *options]) == 0
        return tmp_path / output

    return made
