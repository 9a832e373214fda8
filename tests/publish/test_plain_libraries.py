"""Plain libraries, which have no framework: in an index, and not in the layout of the hub."""

import json

import pytest

from builder.config import Version
from builder.errors import BuilderError
from builder.matrix import variant
from builder.matrix.variant import Variant
from builder.publish import bundle, index
from builder.publish.index import grid
from builder.publish.index.table import Table, fitting
from builder.wheel import kernel_wheel
from tests.wheels import make

CUDA = Variant.parse("ctypes-cu130-x86_64-linux")
TAG = "py3-none-manylinux_2_28_x86_64"


@pytest.fixture
def wheel(tmp_path):
    return kernel_wheel.read(make(tmp_path, "scale", CUDA, requires=("nvidia-cuda-runtime>=13,<14",), tag=TAG))


def test_the_name_of_a_wheel_gives_its_variant_back(wheel):
    assert wheel.wheel.path.name == f"scale-1.0.0+ctypes.cu130-{TAG}.whl"
    assert wheel.variant == CUDA


def test_the_hub_refuses_them_with_the_reason(wheel):
    with pytest.raises(BuilderError, match="is a plain library, but the client of the hub loads only kernels of"):
        bundle.lay_out([wheel])


def test_an_index_offers_them_for_every_torch_of_their_toolkit(wheel):
    found = fitting([wheel])
    assert {compute for _, compute in found} == {"cu130"}
    assert len(found) > 1
    assert not variant.fits(CUDA, torch=Version("2.13"), compute="cpu")
    site = index.build([wheel], index.Settings(with_variants=True))
    table = json.loads(site["variants/simple/scale/scale-1.0.0-variants.json"].content)
    # It has no device code of its own, so the driver alone decides.
    assert table["variants"] == {"cu130": {"nvidia": {"cuda_version_lower_bound": ["13.0"]}}, "null": {}}


def test_the_grid_of_a_kernel_has_a_column_for_them(wheel):
    (only,) = grid.grids(Table.of([wheel]))
    assert only["columns"] == ["any framework"]
