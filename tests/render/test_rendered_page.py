"""docs/rendered.md shows what is rendered: its examples are held to the examples."""

import re

import pytest

from builder.config import Backend
from builder.kernel import load
from builder.render import render
from tests.paths import ROOT

SHOWN = {
    "CPU": ("relu", "cpu"),
    "CUDA": ("relu", "cuda"),
    "ROCm": ("relu", "rocm"),
    "XPU": ("relu", "xpu"),
    "Metal": ("relu", "metal"),
    "tvm-ffi": ("relu-tvm-ffi", "cpu"),
    "Noarch": ("silu-and-mul", "cuda"),
}


def lines_of(text):
    """Return the lines of CMake or TOML, without comments at their ends and without the id of a build."""
    plain = (re.sub(r"\s+# .*", "", line).rstrip() for line in text.splitlines())
    return [re.sub(r"\b(_relu\w*)_[0-9a-f]{7}\b", r"\1_id", line) for line in plain]


@pytest.mark.parametrize("section", SHOWN)
def test_a_section_shows_what_its_example_is_rendered_to(section):
    page = (ROOT / "docs/rendered.md").read_text(encoding="utf-8")
    (text,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    example, backend = SHOWN[section]
    project = render(load(ROOT / "examples" / example), Backend(backend), unique_id="id")
    file = "pyproject.toml" if section == "Noarch" else "CMakeLists.txt"
    rendered = "\n".join(["", *lines_of(project[file]), ""])
    blocks = re.findall(r"^```(?:cmake|toml)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    # The others of CUDA show what relu does not have: what is lost, and CUTLASS.
    shown = blocks[:1] if section == "CUDA" else blocks
    assert shown
    for block in shown:
        assert "\n".join(["", *lines_of(block), ""]) in rendered
