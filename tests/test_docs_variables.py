"""The page of environment variables has every one that the code asks for, and none that nothing reads."""

import re

import pytest

from builder.toolchain.tool import REACHES_BUILD
from tests.paths import ROOT

PAGE = (ROOT / "docs/environment.md").read_text(encoding="utf-8")
ROWS = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
NAMED = {name for row in ROWS for name in re.findall(r"`([A-Za-z_0-9]+)`", row)}
SOURCES = "\n".join(
    path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "builder").rglob("*.py"))
    # What runs inside a derivation or a build is given its variables; a shell sets those of completion.
    if not path.is_relative_to(ROOT / "builder/nix") and path.name not in {"derivation.py", "completing.py"}
)
BY_OTHERS = {"HF_TOKEN", "AWS_REGION", "CUDA_VISIBLE_DEVICES", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
"""What a client of others reads, or a driver."""
SET = {
    *("BUILDER_VARIANTS", "BUILDER_DIRECTORIES"),  # written into jobs of CI, for their own scripts
    *("CMAKE_PREFIX_PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONNOUSERSITE"),  # added to for kernels that run
    "NIX_BUILD_CORES",
}


def test_every_variable_that_the_code_asks_for_is_on_the_page():
    asked = set(re.findall(r"environ(?:\.get\(|\[)\"([A-Z_0-9]+)\"", SOURCES))
    asked |= set(re.findall(r"\"(BUILDER_[A-Z_]+)\"", SOURCES)) | set(REACHES_BUILD)
    of_installers = {name for name in asked if name.startswith(("PIP_", "UV_"))}  # they have one row
    assert sorted(asked - of_installers - SET - NAMED) == []


@pytest.mark.parametrize("name", sorted(NAMED - BY_OTHERS))
def test_a_variable_of_the_page_is_read(name):
    stem = name.removesuffix("_proxy")
    assert f'"{stem}"' in SOURCES


def test_those_that_reach_a_compiler_have_a_star():
    assert {name for row in ROWS for name in re.findall(r"`([A-Z_0-9]+)`\*", row)} == set(REACHES_BUILD)
