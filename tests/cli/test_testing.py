"""For which GPUs `builder test` and `builder watch` build."""

import json
from unittest import mock

import pytest

from builder import kernel as kernels
from builder.author.test_build import TestRequest
from builder.cli import run
from builder.config import Backend
from builder.errors import BuilderError, NotHereError
from builder.matrix import SETS, architectures
from builder.matrix.selection import Scope
from builder.plan import dry_run
from builder.plan.ask import Ask
from builder.plan.dry_run import DryRun
from builder.store import Store
from builder.toolchain import this_machine
from tests.make.test_identity import torch_at
from tests.paths import ROOT

RELU = kernels.load(ROOT / "examples/relu")
CPU = "torch213-cxx11-cpu-x86_64-linux"
CUDA = "torch213-cxx11-cu130-x86_64-linux"


@pytest.fixture
def python(tmp_path):
    """Return an interpreter that says it has a torch for CUDA and pytest."""
    torch = torch_at(tmp_path / "site", version="2.13.0+cu130", cuda="13.0") / "torch"
    answer = json.dumps({"torch": str(torch.parent), "tvm_ffi": None, "pytest": str(torch.parent)})
    (tmp_path / "python").write_text(f"#!/bin/sh\necho '{answer}'\n")
    (tmp_path / "python").chmod(0o755)
    return tmp_path / "python"


@pytest.fixture
def only(python, tmp_path, monkeypatch):
    """Return the GPUs that a cell is built for, with some of them in this machine."""

    def chosen(variant, *, archs=None, here=("9.0",), stored=False, named=False):
        native = mock.Mock(side_effect=[architectures.of(Backend.CUDA, here)] * 2 if here else NotHereError("no GPU"))
        monkeypatch.setattr(this_machine, "native_gpus", native)
        actions = {variant: "hit" if stored else "build"}
        monkeypatch.setattr(
            dry_run,
            "preview",
            lambda build: tuple(
                DryRun(cell=cell, action=actions.get(cell.variant, "skip"), reason="-") for cell in build.cells
            ),
        )
        ask = Ask(
            scope=Scope(sets=SETS, unbundled=True),
            variants=(variant,) if named else (),
            python=python,
            archs=archs,
            no_cache=True,
            store=Store(tmp_path / "store"),
            environ={"PATH": "/usr/bin:/bin"},
            isolation=False,
        )
        request = TestRequest(ask=ask, arguments=())
        first, second = (request.prepare(RELU).build for _ in range(2))
        assert [cell.variant for cell in first.cells] == [variant]
        assert first.ask.options.only == second.ask.options.only
        return first.ask.options.only, native.call_count

    return chosen


def test_a_cell_is_built_for_the_gpu_that_is_there_which_is_asked_for_once(only):
    assert only(CUDA) == (("9.0",), 1)
    assert only(CUDA, named=True) == (("9.0",), 1)


def test_what_the_store_has_is_tested_as_it_is(only):
    assert only(CUDA, stored=True) == ((), 0)


@pytest.mark.parametrize(
    ("variant", "here", "asked"),
    [
        pytest.param(CUDA, (), 1, id="no GPU"),
        pytest.param(CUDA, ("19.0",), 1, id="a GPU that the kernel has no code for"),
        pytest.param(CPU, ("9.0",), 0, id="a cell of the CPU"),
    ],
)
def test_otherwise_all_is_built(only, variant, here, asked):
    assert only(variant, here=here) == ((), asked)


def test_gpus_that_are_named_are_built_for(only):
    assert only(CUDA, archs=architectures.parse("8.0")) == (("8.0",), 0)
    assert only(CUDA, archs="all") == ((), 0)
    assert only(CUDA, archs="native", named=True) == (("9.0",), 2)


def test_a_cell_of_another_backend_than_the_gpus_is_refused(only):
    with pytest.raises(BuilderError, match=r"^9\.0 is of CUDA|it is for the CPU"):
        only(CPU, archs=architectures.parse("9.0"), named=True)


def test_the_command_refuses_what_is_no_architecture(capsys):
    assert run(["test", str(RELU.root), "--archs", "sm_90"]) == 2
    assert "'sm_90' is not an architecture of a GPU: write '9.0'" in capsys.readouterr().err


def test_what_stands_behind_two_dashes_is_for_pytest(monkeypatch, capsys):
    prepare = mock.Mock(side_effect=BuilderError("enough"))
    monkeypatch.setattr(TestRequest, "prepare", lambda request, _kernel: prepare(request))
    assert run(["test", str(RELU.root), "--archs", "native", "--", "-k", "x", "--archs"]) == BuilderError.exit_code
    (request,) = prepare.call_args.args
    assert (request.arguments, request.ask.archs) == (("-k", "x", "--archs"), "native")
    assert capsys.readouterr().out == ""
