"""Everything that a user asks of a build: one value, which comes back from JSON as it was."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from builder import codec, kernel
from builder.config import Backend, LoadTestRule, ToolchainChoice, Version
from builder.errors import BuilderError
from builder.make.part import BuildPart
from builder.matrix import architectures
from builder.matrix.selection import Scope
from builder.plan.ask import Ask
from builder.plan.kernels import NamedKernels
from builder.store import Store
from builder.wheel.options import BuildOptions
from tests.paths import ROOT

PLAIN = Ask(store=Store(Path("/store")), environ={"PATH": "/bin"})
FULL = replace(
    PLAIN,
    kernels=NamedKernels(folders=(Path("a"), Path("b")), several=True),
    scope=Scope(sets=("preview",), backends=(Backend.CUDA,), torches=(Version("2.13"),)),
    variants=("a:torch-cpu",),
    archs=architectures.parse("9.0a,8.0"),
    options=BuildOptions(version="1.0.0", only=("8.0",), load_test=LoadTestRule.TRY, without=("strip",)),
    toolchain=ToolchainChoice.PINNED,
    part=BuildPart(number=1, of=4),
    cache="redis://h",
    time_limit=30.5,
    engine="nix",
)


@pytest.mark.parametrize(
    "ask", [PLAIN, FULL, replace(PLAIN, archs="native", no_cache=True)], ids=["plain", "full", "word"]
)
def test_an_ask_comes_back_from_json(ask):
    assert codec.decode(Ask, json.loads(json.dumps(codec.encode(ask)))) == ask


def test_a_part_is_not_load_tested_whatever_is_asked_for():
    relu = kernel.load(ROOT / "examples/relu")
    assert PLAIN.load_test_of(relu) is LoadTestRule.REQUIRE
    assert FULL.load_test_of(relu) is LoadTestRule.SKIP
    assert replace(FULL, part=None).load_test_of(relu) is LoadTestRule.TRY


def test_options_of_which_one_makes_another_useless_are_refused():
    PLAIN.require_possible(dry_run=True)
    for ask, said in (
        (FULL, "builds by Nix have no parts"),
        (replace(FULL, part=None, isolation=False), "Nix builds only against pinned wheels"),
        (replace(FULL, part=None), "--dry-run asks the store"),
        (replace(PLAIN, per_file=True), "--per-file is for derivations of Nix"),
        (replace(PLAIN, part=BuildPart(number=1, of=2), no_cache=True), "--no-cache keeps nothing"),
    ):
        with pytest.raises(BuilderError, match=said):
            ask.require_possible(dry_run=True)
