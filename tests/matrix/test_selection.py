"""Which cells are asked for, as values: the commands say the same in tests/cli/test_selecting.py."""

from dataclasses import replace

import pytest

from builder import kernel, toolchain
from builder.config import Backend
from builder.config.values import Version
from builder.errors import BuilderError, NothingToDoError
from builder.matrix import rows
from builder.matrix.selection import Scope, ask, require_cells
from builder.plan import choosing
from tests.paths import ROOT

RELU = kernel.load(ROOT / "examples/relu")
STABLE = kernel.load(ROOT / "examples/rmsnorm-stable")
SILU = kernel.load(ROOT / "examples/silu-and-mul")
HERE, THERE = "x86_64-linux", "aarch64-linux"


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    """Let this machine be one of x86_64-linux."""
    monkeypatch.setattr(toolchain, "system", lambda: HERE)


def test_a_scope_restricts_by_set_system_and_backend():
    scope = Scope(sets=("legacy",), systems=(HERE,), backends=(Backend.CUDA,))
    found = scope.candidates(rows())
    assert found
    assert {(row.set, row.system, row.backend) for row in found} == {("legacy", HERE, Backend.CUDA)}


def test_of_a_noarch_wheel_the_cell_of_this_machine_is_built(monkeypatch):
    for here in (HERE, THERE):
        monkeypatch.setattr(toolchain, "system", lambda here=here: here)
        cpu = [cell for cell in choosing.cells(SILU, Scope()) if cell.variant == "torch-cpu"]
        assert [cell.system for cell in cpu] == [here]
        (named,) = choosing.cells(SILU, Scope(), variants=("torch-cpu",))
        assert named.system == here


def test_a_noarch_wheel_for_which_this_machine_has_no_row_is_built_all_the_same(monkeypatch):
    monkeypatch.setattr(toolchain, "system", lambda: "aarch64-darwin")
    (cell,) = choosing.cells(SILU, Scope(), variants=("torch-xpu",))
    assert cell.system == HERE


def test_variants_come_in_the_order_in_which_they_are_named_and_once():
    names = tuple(reversed([cell.variant for cell in ask(RELU, Scope(systems=(HERE,))).cells[:3]]))
    assert tuple(cell.variant for cell in choosing.cells(RELU, Scope(), variants=(*names, names[0]))) == names


def test_a_variant_that_is_not_of_a_release_may_be_named():
    legacy = Scope(sets=("legacy",))
    every = {cell.variant for cell in ask(RELU, replace(legacy, unbundled=True)).cells}
    (left,) = every - {cell.variant for cell in ask(RELU, legacy).cells}
    (cell,) = choosing.cells(RELU, Scope(), variants=(left,))
    assert not cell.bundle


def test_several_unknown_variants_are_named_with_what_is_near_each():
    with pytest.raises(NothingToDoError) as raised:
        choosing.cells(SILU, Scope(), variants=("torch-cdua", "torch-cpx", "torch-cuda"))
    assert raised.value.message == "'torch-cdua', 'torch-cpx': no such cell of this kernel"
    assert raised.value.help == "did you mean 'torch-cuda' or 'torch-cpu'?"


def test_a_name_without_its_end_is_completed_and_a_long_list_is_cut():
    with pytest.raises(NothingToDoError) as raised:
        choosing.cells(RELU, Scope(), variants=("torch213-cxx11-cu130",))
    named = [f"torch213-cxx11-cu130-{machine}-linux" for machine in ("x86_64", "aarch64")]
    assert raised.value.help == f"did you mean {' or '.join(map(repr, named))}?"
    with pytest.raises(NothingToDoError) as raised:
        choosing.cells(RELU, Scope(), variants=("something-else",))
    shown, _, more = raised.value.help.partition(" and ")
    assert shown.count(", ") == 11
    assert shown.startswith("there are: torch213-cxx11-cpu-x86_64-linux, ")  # those of the scope first
    assert more.endswith(" more: `builder matrix --set all --all --format names` shows them")


def test_a_variant_that_is_near_to_nothing_gets_the_list():
    with pytest.raises(NothingToDoError, match=r"there are: .*torch-cuda"):
        choosing.cells(SILU, Scope(), variants=("something-else",))


def test_a_backend_that_the_kernel_lacks_is_refused_whether_or_not_a_variant_is_named():
    for variants in ((), ("torch-cpu",)):
        with pytest.raises(BuilderError, match="'silu-and-mul' has no backend 'metal': it has "):
            choosing.cells(SILU, Scope(backends=(Backend.METAL,)), variants=variants)


def test_an_empty_selection_names_each_row_and_the_place_that_decided():
    with pytest.raises(NothingToDoError) as raised:
        require_cells(ask(RELU, Scope(systems=("x86_64-windows",))))
    assert "this part of the matrix has no row for it" in raised.value.message
    assert raised.value.help == "`builder matrix --set all --all` shows what the whole matrix has"


def test_a_kernel_without_a_cell_is_told_which_other_set_has_one(tmp_path):
    text = (ROOT / "examples/relu/build.toml").read_text()
    (tmp_path / "build.toml").write_text(
        text.replace("[torch]", '[general.cuda]\nmaxver = "13.0"\n\n[torch]\nminver = "2.15"')
    )
    asked = kernel.load(tmp_path)
    scope = Scope(backends=(Backend.CUDA,), systems=("x86_64-linux",))
    with pytest.raises(NothingToDoError) as raised:
        require_cells(ask(asked, scope))
    assert raised.value.help.startswith("`--set preview` has cells of it; widen what leaves the rows out")
    require_cells(ask(asked, replace(scope, sets=("preview",))))


def test_a_kernel_for_a_torch_that_left_the_release_set_is_told_which_set_has_it(tmp_path):
    text = (ROOT / "examples/relu/build.toml").read_text()
    (tmp_path / "build.toml").write_text(text.replace("[torch]", '[torch]\nmaxver = "2.12"'))
    old = kernel.load(tmp_path)
    with pytest.raises(NothingToDoError) as raised:
        require_cells(ask(old, Scope()))
    assert raised.value.help.startswith("`--set legacy` has cells of it; widen what leaves the rows out")
    require_cells(ask(old, Scope(sets=("legacy",))))


def test_a_torch_selects_what_is_built_with_it_and_shows_what_becomes_of_its_other_rows():
    scope = Scope(backends=(Backend.CUDA,), systems=(HERE,))
    every = ask(STABLE, scope)
    assert {"built", "merged"} <= {decision.rule for decision in every.decisions}
    for torch in {decision.row.torch for decision in every.decisions}:
        found = ask(STABLE, replace(scope, torches=(torch,)))
        assert found.decisions == tuple(each for each in every.decisions if each.row.torch == torch)


def test_a_torch_of_another_set_is_told_which_set_has_it():
    with pytest.raises(NothingToDoError) as raised:
        require_cells(ask(RELU, Scope(torches=(Version("2.12"),))))
    assert raised.value.help == "`--set legacy` has cells of it"


def test_a_selection_with_cells_is_fine():
    require_cells(ask(RELU, Scope()))
