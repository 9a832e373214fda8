"""A cell of which Nix compiles each source by itself: the same wheel, and an edit compiles what it has to."""

import json
import re
from pathlib import Path

import pytest

from tests.integration import nix_tools

builder, relu, tiny = nix_tools.builder, nix_tools.relu, nix_tools.tiny
STABLE = "torch-stable-abi210-cpu-x86_64-linux"
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


def test_after_an_edit_that_file_is_compiled_and_the_cell_made_and_nothing_else(tiny):
    Built(tiny, STABLE, **{"per-file": True})
    source = tiny / "csrc/twice.cpp"
    source.write_text(f"{source.read_text()}\nint edited;\n")
    again = Built(tiny, STABLE, **{"per-file": True})
    assert again.built == {f"tiny-{STABLE}-twice.cpp", f"tiny-{STABLE}"}
    assert "2 of " in again.said


def test_the_error_of_a_source_is_shown_by_the_build_of_the_cell(tiny):
    source = tiny / "csrc/twice.cpp"
    source.write_text(f"{source.read_text()}\nint wrong = nowhere;\n")
    done = Built(tiny, STABLE, check=False, **{"per-file": True})
    assert "csrc/twice.cpp is left to the build of the cell" in done.said
    assert re.search(rf"tiny-{STABLE}> /tmp/builder/src/csrc/twice.cpp:.*nowhere", done.said), done.said


def test_a_source_that_includes_another_one_is_compiled_too(tiny):
    (tiny / "csrc/more.inc.cpp").write_text("static int more;\n")
    text = (tiny / "build.toml").read_text()
    (tiny / "build.toml").write_text(text.replace('"csrc/twice.h"', '"csrc/twice.h", "csrc/more.inc.cpp"'))
    source = tiny / "csrc/twice.cpp"
    source.write_text(f'#include "more.inc.cpp"\n{source.read_text()}')
    assert "3 of " in Built(tiny, STABLE, **{"per-file": True}).said


def test_the_command_compiles_file_by_file_when_told_to(builder, tiny):
    told = json.loads(builder(tiny, "--variant", STABLE, "--per-file", "--json", check=0).stdout)
    wheel = Built(tiny, STABLE, **{"per-file": True})
    assert wheel.built == set()
    assert Path(told[0]["report"]["output"]) == wheel.wheel.parent
