"""The tutorial runs, from nothing to a published wheel."""

import pytest

from tests.integration import blocks

pytestmark = [pytest.mark.torch, pytest.mark.cmake, pytest.mark.network, pytest.mark.slow]


def test_the_tutorial_runs(tmp_path):
    assert len(blocks.blocks("tutorial.md")) > 7
    done = blocks.run("tutorial.md", tmp_path)
    work = tmp_path / "work"
    assert "tensor([0.0000, 0.5000, 1.0000, 1.5000])" in done.stdout
    assert list((work / "www" / "files").glob("my_kernel-*.whl"))
    assert list((work / "my-kernel" / "build").glob("torch213-cxx11-cpu-*"))
