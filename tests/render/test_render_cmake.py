"""The CMake modules, tested in CMake: each file of tests/cmake is a script; its first line says how it must fail."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from builder.render import quoting
from builder.resources import CMAKE
from tests.given.processes import tool
from tests.paths import TESTS

SCRIPTS = sorted(path for path in (TESTS / "cmake").glob("*.cmake") if ".inc." not in path.name)

pytestmark = pytest.mark.cmake


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script, tmp_path):
    command = [
        tool("cmake"),
        f"-DKERNEL_CMAKE_DIR={CMAKE}",
        f"-DKERNEL_TEST_DIR={tmp_path}",
        f"-DPython_EXECUTABLE={sys.executable}",
        f"-DKERNEL_TEST={script}",
        "-P",
        str(script.with_name("run.inc.cmake")),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    output = " ".join((done.stdout + done.stderr).split())  # CMake breaks lines where it likes
    first = script.read_text(encoding="utf-8").splitlines()[0]
    expected = re.fullmatch(r"# (error|output): (.*)", first)
    if expected is not None:
        assert expected[2] in output
    assert (done.returncode != 0) == (expected is not None and expected[1] == "error"), output
    assert "CMake Warning" not in output


@pytest.mark.parametrize("module", sorted(CMAKE.rglob("*.cmake")), ids=lambda path: path.relative_to(CMAKE).as_posix())
def test_a_module_has_one_documented_function_named_by_its_path(module):
    text = module.read_text(encoding="utf-8")
    if module.name in {"check.cmake", "embed.cmake", "make.cmake"}:
        pytest.skip("a script")
    name = "kernel_" + module.relative_to(CMAKE).with_suffix("").as_posix().replace("/", "_")
    assert re.findall(r"^function\((\w+)", text, re.MULTILINE) == [name]
    assert text.startswith("include_guard(GLOBAL)\n")
    assert f"  {name}(" in text.partition("#]====")[0], "the documentation shows no call"
    assert not re.search(r"^\s*macro\(|^\s*add_(compile|link)_|^\s*include_directories\(", text, re.MULTILINE)


PIECES = [
    '"',
    "'",
    "\\",
    "$",
    "${CMAKE_VERSION}",
    "$ENV{HOME}",
    "$CACHE{X}",
    "@X@",
    ")",
    "(",
    "#",
    "#[[",
    "]]",
    "[=[",
    "]=]",
]
PIECES += [
    "[",
    "]",
    "<",
    ">",
    "$<",
    ";",
    "\n",
    "\t",
    " ",
    "a",
    "-D",
    "=",
    "%",
    "`id`",
    "$(id)",
    "ünï",
    "日本",
    "\u202e",
    "x" * 999,
]
TEXTS = st.one_of(st.text(min_size=1), st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join))
PROBE = """
function(seen text)
endfunction()
function(probe)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "FLAGS")
  foreach(flag IN LISTS arg_FLAGS)
    seen("${flag}")
  endforeach()
endfunction()
"""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(TEXTS, min_size=1, max_size=40))
@example(PIECES)
def test_cmake_sees_what_is_accepted_and_nothing_else(tmp_path, texts):
    accepted = [text for text in texts if quoting.why_not_cmake(text) is None]
    script, trace = tmp_path / "probe.cmake", tmp_path / "trace"
    lines = "".join(f"  {quoting.cmake(text)}\n" for text in accepted)
    script.write_text(f"cmake_minimum_required(VERSION 3.26...4.3)\n{PROBE}probe(FLAGS\n{lines})\n", encoding="utf-8")
    options = ["--trace-expand", "--trace-format=json-v1", f"--trace-redirect={trace}"]
    done = subprocess.run([tool("cmake"), *options, "-P", script], capture_output=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    calls = [json.loads(line) for line in trace.read_text(encoding="utf-8").split("\n") if line]
    assert [call["args"] for call in calls if call.get("cmd") == "seen"] == [[text] for text in accepted]
