"""Wheels of one kernel, one for each Python: an installer takes its own, and each is published."""

import json

import pytest
from packaging import tags
from packaging.utils import parse_wheel_filename

from builder.cli import run
from builder.errors import BuilderError
from builder.matrix.variant import Variant
from builder.wheel import kernel_wheel
from tests.wheels import make

NAME = "torch213-cxx11-cpu-x86_64-linux"
PYTHONS = ("cp310", "cp311", "cp312")


@pytest.fixture
def wheels(dist):
    return [make(dist, "relu", Variant.parse(f"{NAME}-{python}"), requires=["torch==2.13.*"]) for python in PYTHONS]


@pytest.mark.parametrize(("python", "tag"), [((3, 10), "cp310"), ((3, 12), "cp312"), ((3, 13), None)])
def test_an_installer_takes_the_wheel_of_its_python_and_no_other(wheels, python, tag):
    supported = set(tags.cpython_tags(python, platforms=["manylinux_2_28_x86_64"]))
    names = [path.name for path in wheels if parse_wheel_filename(path.name)[3] & supported]
    assert names == ([] if tag is None else [f"relu-1.0.0+torch213.cxx11.cpu-{tag}-{tag}-manylinux_2_28_x86_64.whl"])


def test_the_python_is_read_from_the_tags_and_is_a_variant_of_its_own(wheels):
    found = kernel_wheel.read_all(wheels)
    assert [str(wheel.variant) for wheel in found] == [f"{NAME}-{python}" for python in PYTHONS]
    assert kernel_wheel.one_kernel(found) == "relu"
    with pytest.raises(BuilderError, match="two wheels are of one variant"):
        kernel_wheel.one_kernel([*found, found[0]])


@pytest.mark.usefixtures("wheels")
def test_the_index_has_them_all_under_one_version(indexed):
    page = json.loads((indexed() / "simple/relu/index.json").read_text())
    assert len(page["files"]) == len(PYTHONS)
    assert page["versions"] == ["1.0.0+torch213.cxx11.cpu"]
    assert {file["requires-python"] for file in page["files"]} == {">=3.9"}


def test_a_bundle_has_a_folder_for_each(wheels, tmp_path):
    assert run(["bundle", *map(str, wheels), "--output", str(tmp_path / "build")]) == 0
    assert {path.name for path in (tmp_path / "build").iterdir() if path.is_dir()} == {f"{NAME}-{p}" for p in PYTHONS}
