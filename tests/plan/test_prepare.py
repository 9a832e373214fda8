"""What both engines make of a cell: the same job, the same record, and one look at torch."""

import json
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from builder import toolchain
from builder.config import LoadTestRule
from builder.environment import pinned
from builder.make import derivation, record
from builder.make.framework import torch_identity
from builder.make.job import PinnedPackages, Spec
from builder.make.record import changes, record_of
from builder.wheel.options import BuildOptions
from tests import needs
from tests.given.cells import cell_in
from tests.given.files import program
from tests.given.planning import planner
from tests.make.test_identity import torch_at
from tests.paths import ROOT, TESTS

TINY = TESTS / "data/kernels/tiny"
SILU = ROOT / "examples/silu-and-mul"
UNTESTED = {"options": BuildOptions(load_test=LoadTestRule.SKIP), "environ": {"CCACHE_DISABLE": "1"}}
HERE = {"sets": ("release",), "system": toolchain.system()}
READ = []
"""Files that were read while `COUNTING` has something."""
COUNTING = []


def _note(event, given):
    if COUNTING and event == "open" and given[1] == "r":
        READ.append(str(given[0]))


sys.addaudithook(_note)  # there is no way to take one away


@pytest.fixture
def reads():
    """Return how often torch was looked at."""
    READ.clear()
    COUNTING.append(True)
    yield lambda: sum(path.endswith("torch/version.py") for path in READ)
    COUNTING.clear()


@pytest.fixture
def _installed(monkeypatch):
    """Let an environment be made with a torch in it, and nothing fetched."""

    def make(pins, *, store_root, **_):
        found = pinned.at(pins, store_root)
        if not found.path.is_dir():
            torch_at(found.site_packages)
        return found

    monkeypatch.setattr(pinned, "make", make)


def test_torch_is_looked_at_once_in_a_build_without_isolation(tmp_path, reads):
    answer = json.dumps({"torch": str(torch_at(tmp_path / "site")), "tvm_ffi": None})
    python = program(tmp_path / "bin/python", f"#!/bin/sh\necho '{answer}'\n")
    engine = planner(SILU, tmp_path, **UNTESTED, isolation=False, python=python)
    spec = engine.spec(cell_in(SILU, **HERE, variant="torch-cpu"))
    assert engine.record(spec) == record_of(engine.job(spec))
    assert reads() == 1


@pytest.mark.usefixtures("_installed")
def test_torch_is_looked_at_once_in_a_build_with_isolation(tmp_path, reads):
    engine = planner(SILU, tmp_path, **UNTESTED)
    spec = engine.spec(cell_in(SILU, **HERE, variant="torch-cpu"))
    assert engine.record(spec) is None
    job = engine.job(spec)
    assert reads() == 1
    assert engine.record(spec) == record_of(job), "the store remembers what was read"
    assert reads() == 1


@pytest.fixture(params=[pytest.param("compiled", marks=needs.only_with("g++")), "noarch"])
def both(request, tmp_path, _installed):
    """Prepare a cell as the local engine does, and of its spec as Nix does."""
    compiled = request.param == "compiled"
    root = TINY if compiled else SILU
    variant = f"torch-stable-abi210-cpu-{toolchain.system()}" if compiled else "torch-cpu"
    engine = planner(root, tmp_path, **UNTESTED)
    ours = engine.job(engine.spec(cell_in(root, **HERE, variant=variant)))
    # Nix has the same wheels elsewhere.
    elsewhere = tmp_path / "nix" / ours.spec.environment.path.name
    theirs = PinnedPackages(path=elsewhere, pins=ours.spec.environment.pins)
    torch_at(theirs.site_packages)
    spec = Spec.from_json(replace(ours.spec, environment=theirs).to_json())
    environ = {"PATH": "/usr/bin:/bin", "NIX_BUILD_CORES": "3"}
    return ours, derivation.job_of(spec, environ, sandboxed=True, at_canonical_path=False)


MACHINES = {"environment: place", "environment: sandbox"}
"""What may differ, where the local engine has no sandbox on this machine, and Nix has."""


def test_the_record_of_nix_is_that_of_the_local_engine(both):
    ours, theirs = (record_of(job) for job in both)
    different = {change.field for change in changes(json.loads(ours.to_json()), theirs)}
    assert different <= MACHINES
    assert ours.wheel["requires"].startswith("torch")
    assert theirs.builder == record.identity()


def test_the_job_of_nix_is_that_of_the_local_engine_but_for_places(both):
    ours, theirs = both
    places = {"spec", "environ", "path"}
    how = {"cores", "keeps_bytecode", "enclosed", "in_nix_sandbox"}
    different = {each.name for each in fields(ours) if getattr(ours, each.name) != getattr(theirs, each.name)}
    assert different <= places | how
    there = replace(theirs.spec, environment=ours.spec.environment)
    assert there == ours.spec


def test_a_spec_names_the_environments_that_it_uses(both):
    for job in both:
        assert job.spec.environments == (job.spec.environment.path,)
        assert isinstance(job.frontend, Path)
    assert torch_identity(both[0].site_packages) == torch_identity(both[1].site_packages)
