"""A cell of which Nix compiles each source by itself: the same wheel, and an edit compiles what it has to."""

import json
import re
from pathlib import Path

import pytest

from tests.given.files import edit
from tests.given.kernels import PLAIN_CELL
from tests.given.kernels import TINY_CELL as STABLE
from tests.integration import nix_tools

builder, plain, relu, tiny = nix_tools.builder, nix_tools.plain, nix_tools.relu, nix_tools.tiny
TVM_FFI = "tvm-ffi01-cpu-x86_64-linux"

pytestmark = [
    *nix_tools.needs_nix,
    pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-"),
]


class Built:
    """What Nix built of one kernel."""

    def __init__(self, kernel, variant, *, check=True, **asked):
        expression = nix_tools.expression([kernel], variant, **asked)
        # A name with a space is no attribute.
        expression = expression.replace(f"  {kernel.name} =", "  kernel =")
        done = nix_tools.nix("build", "-L", "--impure", "--no-link", "--json", "--expr", expression, "kernel")
        assert (done.returncode == 0) == check, done.stderr
        self.said = done.stderr
        self.built = {Path(name).name for name in re.findall(r"building '/nix/store/\w{32}-(.*?)\.drv'", done.stderr)}
        if check:
            output = Path(json.loads(done.stdout)[0]["outputs"]["out"])
            (self.wheel,) = output.glob("*.whl")
            self.record = json.loads((output / "record.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("fixture", "variant"), [("tiny", STABLE), ("relu", TVM_FFI)])
def test_a_cell_of_files_compiled_by_themselves_is_the_same_wheel(request, fixture, variant):
    kernel = request.getfixturevalue(fixture)
    parts = Built(kernel, variant, **{"per-file": True})
    assert re.search(r"\b2 of \d+ files were compiled before, by themselves", parts.said), parts.said
    whole = Built(kernel, variant)
    assert parts.wheel != whole.wheel
    assert parts.wheel.read_bytes() == whole.wheel.read_bytes()
    assert parts.record == whole.record


def test_after_an_edit_that_file_is_compiled_and_the_cell_made_and_nothing_else(plain):
    Built(plain, PLAIN_CELL, **{"per-file": True})
    source = plain / "csrc/scale.cpp"
    source.write_text(f"{source.read_text()}\nint edited;\n")
    again = Built(plain, PLAIN_CELL, **{"per-file": True})
    assert again.built == {f"plain-{PLAIN_CELL}-scale.cpp", f"plain-{PLAIN_CELL}"}
    assert "2 of " in again.said


def test_the_error_of_a_source_is_shown_by_the_build_of_the_cell(plain):
    source = plain / "csrc/scale.cpp"
    source.write_text(f"{source.read_text()}\nint wrong = nowhere;\n")
    done = Built(plain, PLAIN_CELL, check=False, **{"per-file": True})
    assert "csrc/scale.cpp is left to the build of the cell" in done.said
    assert re.search(rf"plain-{PLAIN_CELL}> /tmp/builder/src/csrc/scale.cpp:.*nowhere", done.said), done.said


def test_a_source_that_includes_another_one_is_compiled_too(plain):
    (plain / "csrc/more.inc.cpp").write_text("static int more;\n")
    edit(plain / "build.toml", '"csrc/scale.cpp"', '"csrc/scale.cpp", "csrc/more.inc.cpp"')
    source = plain / "csrc/scale.cpp"
    source.write_text(f'#include "more.inc.cpp"\n{source.read_text()}')
    assert "3 of " in Built(plain, PLAIN_CELL, **{"per-file": True}).said


def test_the_command_compiles_file_by_file_when_told_to(builder, plain):
    told = json.loads(builder(plain, "--variant", PLAIN_CELL, "--per-file", "--json", check=0).stdout)
    wheel = Built(plain, PLAIN_CELL, **{"per-file": True})
    assert wheel.built == set()
    assert Path(told[0]["report"]["output"]) == wheel.wheel.parent
