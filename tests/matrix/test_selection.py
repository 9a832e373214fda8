"""Which cells are asked for, as values: the commands say the same in tests/cli/test_selecting.py."""

import pytest

from builder import kernel
from builder.config import Backend
from builder.errors import BuilderError, NothingToDoError
from builder.matrix import rows
from builder.matrix.selection import Scope, ask, require_cells, to_build
from tests.paths import ROOT

RELU = kernel.load(ROOT / "examples/relu")
SILU = kernel.load(ROOT / "examples/silu-and-mul")
HERE, THERE = "x86_64-linux", "aarch64-linux"


def test_a_scope_restricts_by_set_system_and_backend():
    scope = Scope(sets=("preview",), systems=(HERE,), backends=(Backend.CUDA,))
    found = scope.candidates(rows())
    assert found
    assert {(row.set, row.system, row.backend) for row in found} == {("preview", HERE, Backend.CUDA)}


def test_of_a_noarch_wheel_the_cell_of_this_machine_is_built():
    for here in (HERE, THERE):
        cpu = [cell for cell in to_build(SILU, Scope(), here=here) if cell.variant == "torch-cpu"]
        assert [cell.system for cell in cpu] == [here]
        (named,) = to_build(SILU, Scope(), variants=("torch-cpu",), here=here)
        assert named.system == here


def test_a_noarch_wheel_for_which_this_machine_has_no_row_is_built_all_the_same():
    (cell,) = to_build(SILU, Scope(), variants=("torch-xpu",), here="aarch64-darwin")
    assert cell.system == HERE


def test_variants_come_in_the_order_in_which_they_are_named_and_once():
    names = tuple(reversed([cell.variant for cell in ask(RELU, Scope(systems=(HERE,))).cells[:3]]))
    assert tuple(cell.variant for cell in to_build(RELU, Scope(), variants=(*names, names[0]), here=HERE)) == names


def test_a_variant_that_is_not_of_a_release_may_be_named():
    (left,) = {cell.variant for cell in ask(RELU, Scope(unbundled=True)).cells} - {
        cell.variant for cell in ask(RELU, Scope()).cells
    }
    (cell,) = to_build(RELU, Scope(), variants=(left,), here=HERE)
    assert not cell.bundle


def test_several_unknown_variants_are_named_with_what_is_near_each():
    with pytest.raises(NothingToDoError) as raised:
        to_build(SILU, Scope(), variants=("torch-cdua", "torch-cpx", "torch-cuda"), here=HERE)
    assert raised.value.message == "'torch-cdua', 'torch-cpx': no such cell of this kernel"
    assert raised.value.help == "did you mean 'torch-cuda' or 'torch-cpu'?"


def test_a_name_without_its_end_is_completed_and_a_long_list_is_cut():
    with pytest.raises(NothingToDoError) as raised:
        to_build(RELU, Scope(), variants=("torch213-cxx11-cu130",), here=HERE)
    named = [f"torch213-cxx11-cu130-{machine}-linux" for machine in ("x86_64", "aarch64")]
    assert raised.value.help == f"did you mean {' or '.join(map(repr, named))}?"
    with pytest.raises(NothingToDoError) as raised:
        to_build(RELU, Scope(), variants=("something-else",), here=HERE)
    shown, _, more = raised.value.help.partition(" and ")
    assert shown.count(", ") == 11
    assert more.endswith(" more: `builder matrix --set all --all --format names` shows them")


def test_a_variant_that_is_near_to_nothing_gets_the_list():
    with pytest.raises(NothingToDoError, match=r"there are: .*torch-cuda"):
        to_build(SILU, Scope(), variants=("something-else",), here=HERE)


def test_a_backend_that_the_kernel_lacks_is_refused_whether_or_not_a_variant_is_named():
    for variants in ((), ("torch-cpu",)):
        with pytest.raises(BuilderError, match="'silu-and-mul' has no backend 'metal': it has "):
            to_build(SILU, Scope(backends=(Backend.METAL,)), variants=variants, here=HERE)


def test_an_empty_selection_names_each_row_and_the_place_that_decided():
    with pytest.raises(NothingToDoError) as raised:
        require_cells(ask(RELU, Scope(systems=("x86_64-windows",))))
    assert "this part of the matrix has no row for it" in raised.value.message
    assert raised.value.help == "`builder matrix --set all --all` shows what the whole matrix has"


def test_a_selection_with_cells_is_fine():
    require_cells(ask(RELU, Scope()))
