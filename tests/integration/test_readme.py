"""The first hour works from the README alone: init, edit, check, test, build, index, and an install from the index."""

import re

import pytest

from builder.matrix import rows
from tests.given.servers import free_port
from tests.integration import blocks

README = "../README.md"


@pytest.mark.torch
@pytest.mark.cmake
@pytest.mark.network
@pytest.mark.slow
def test_the_first_hour_runs(tmp_path):
    done = blocks.run(README, tmp_path, replace=[("8000", str(free_port()))])
    assert "build.toml: no problems" in done.stdout
    assert "12 passed" in done.stdout  # with the test that the reader added
    assert "Successfully installed my-kernel-1.0.0+torch213.cxx11.cpu" in done.stdout
    assert done.stdout.rstrip().endswith("tensor([0.0000, 0.5000, 1.0000, 1.5000])")


@pytest.mark.torch
@pytest.mark.cmake
@pytest.mark.network
@pytest.mark.slow
def test_the_four_lines_of_the_front_page_build_a_wheel(tmp_path):
    (lines,) = blocks.blocks("index.md")
    assert len(lines.splitlines()) == 4
    done = blocks.run("index.md", tmp_path, replace=[("pip install kernel-wheel-builder", "builder --version")])
    assert re.search(r"^dist/my_kernel-1\.0\.0\+torch\d+\.cxx11\.cpu-py3-none-\S+\.whl$", done.stdout, re.MULTILINE)


def test_the_readme_installs_the_newest_torch_that_has_a_wheel_for_the_cpu_alone():
    text = (blocks.ROOT / "README.md").read_text(encoding="utf-8")
    cpu = ("release", "cpu", "x86_64-linux")
    newest = max(row.torch for row in rows() if row.tested and (row.set, row.compute, row.system) == cpu)
    assert f'pip install "torch=={newest}.*"' in text
    assert re.findall(r"/for/(torch\d+)-cpu/", text) == [f"torch{newest.major}{newest.minor}"]
