"""Which variant of a locked kernel a load test has."""

import pytest

from builder import kernel as kernels
from builder import matrix
from builder.make import locked
from tests.paths import ROOT

LINUX = "x86_64-linux"


def cell(variant):
    rows = [row for row in matrix.rows() if row.system == LINUX]
    config = kernels.load(ROOT / "examples/relu").config
    return next(each for each in matrix.select(config, rows, unbundled=True) if each.variant == variant)


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        (["torch-cpu", "torch213-cxx11-cpu-x86_64-linux"], "torch213-cxx11-cpu-x86_64-linux"),
        (["torch-cpu", "torch-stable-abi210-cpu-x86_64-linux"], "torch-stable-abi210-cpu-x86_64-linux"),
        (
            ["torch-stable-abi29-cpu-x86_64-linux", "torch-stable-abi210-cpu-x86_64-linux"],
            "torch-stable-abi210-cpu-x86_64-linux",
        ),
        (["torch-cuda", "torch-cpu"], "torch-cpu"),
        (["torch-stable-abi214-cpu-x86_64-linux", "torch213-cxx11-cu130-x86_64-linux"], None),
        (["torch213-cxx11-cpu-aarch64-linux", "torch212-cxx11-cpu-x86_64-linux", "no-variant"], None),
        (["tvm-ffi01-cpu-x86_64-linux", "ctypes-cpu-x86_64-linux"], None),
        ([], None),
    ],
)
def test_it_is_the_one_that_the_client_would_load(there, chosen):
    assert locked.variant_for(cell("torch213-cxx11-cpu-x86_64-linux"), there) == chosen
