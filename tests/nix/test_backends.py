"""Nix takes the names of backends from their table."""

import json
import subprocess

import pytest

from builder.config import Backend
from tests import needs
from tests.paths import ROOT

pytestmark = [pytest.mark.nix, needs.only_with("nix-instantiate")]


def test_nix_names_a_wheel_of_python_alone_as_its_table_does():
    rows = " ".join(
        f'{{ backend = "{backend}"; torch = "2.13"; toolkit = null; compute = "{backend}"; system = "x86_64-linux"; '
        'bundle = true; noarch = true; tested = true; set = "release"; }'
        for backend in Backend
    )
    names = " ".join(f'"{backend}"' for backend in Backend)
    kernel = f"{{ general.backends = [ {names} ]; torch-noarch = {{ }}; }}"
    select = f"(import {ROOT}/builder/nix).matrix.select {{ }} {kernel}"
    expression = f"map (cell: cell.variant) ({select} [ {rows} ])"
    command = ["nix-instantiate", "--eval", "--strict", "--json", "--expr", expression]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [backend.facts.noarch_variant for backend in Backend]
