"""A quick build is never taken for a full one: not by its project, and not by its key."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builder import kernel, matrix
from builder.config import Backend
from builder.errors import BuilderError
from builder.make.job import InstalledPackages, Spec
from builder.make.record import record_of
from builder.matrix import architectures
from builder.render import render
from builder.wheel.options import BuildOptions
from tests.given.jobs import job
from tests.paths import ROOT

STABLE = kernel.load(ROOT / "examples/rmsnorm-stable")
CELL = next(cell for cell in matrix.select(STABLE.config, matrix.rows()) if cell.toolkit == "13.0")
ALL = architectures.generations()[0].capabilities


def test_a_project_is_rendered_for_its_gpus_with_every_toolkit():
    lists = render(STABLE, Backend.CUDA, only=("9.0", "12.0"))["CMakeLists.txt"]
    (line,) = [text.split() for text in lists.splitlines() if "CUDA>=12.8" in text]
    assert line[1:] == ["9.0", "12.0"]
    (line,) = [text.split() for text in lists.splitlines() if "CUDA>=11.8" in text]
    assert line[1:] == ["9.0", "lost", "12.0"]


def test_a_full_build_and_a_quick_one_have_other_keys_also_where_they_compile_the_same(tmp_path):
    given = job(kernel=STABLE, project=render(STABLE, Backend.CUDA))
    environment = InstalledPackages(python=Path(sys.executable), site_packages=tmp_path)
    specs = (
        Spec(kernel=STABLE.root, cell=CELL, environment=environment, options=BuildOptions(only=only))
        for only in ((), ALL, ("9.0",))
    )
    full, quick, other = (record_of(replace(given, spec=spec)) for spec in specs)
    assert "archs" not in full.wheel
    assert quick.wheel["archs"] == " ".join(ALL)
    assert len({full.key, quick.key, other.key}) == 3


def test_a_backend_without_such_code_is_not_rendered():
    with pytest.raises(BuilderError, match=r"9\.0: what is built for the CPU is told no architectures"):
        render(STABLE, Backend.CPU, only=("9.0",))


def test_a_rocm_project_is_rendered_for_its_gpus():
    kernel_of_rocm = kernel.load(ROOT / "tests/integration/kernels/scale-hip")
    full, quick = (render(kernel_of_rocm, Backend.ROCM, only=only)["CMakeLists.txt"] for only in ((), ("gfx90a",)))
    words = quick.split()
    assert words[words.index("ARCHITECTURES") + 1] == "gfx90a"
    assert "gfx1030" in full
    assert "gfx1030" not in quick
