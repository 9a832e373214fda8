"""The CMake modules, tested in CMake: each file of tests/cmake is a script; its first line says how it must fail."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builder.resources import CMAKE

SCRIPTS = sorted(path for path in Path(__file__).with_name("cmake").glob("*.cmake") if ".inc." not in path.name)

pytestmark = pytest.mark.cmake


def cmake_program():
    beside = Path(sys.executable).with_name("cmake")
    return str(beside) if beside.exists() else shutil.which("cmake")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script, tmp_path):
    command = [
        cmake_program(),
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
    if module.name == "embed.cmake":
        pytest.skip("a script")
    name = "kernel_" + module.relative_to(CMAKE).with_suffix("").as_posix().replace("/", "_")
    assert re.findall(r"^function\((\w+)", text, re.MULTILINE) == [name]
    assert text.startswith("include_guard(GLOBAL)\n")
    assert f"  {name}(" in text.partition("#]====")[0], "the documentation shows no call"
    assert not re.search(r"^\s*macro\(|^\s*add_(compile|link)_|^\s*include_directories\(", text, re.MULTILINE)
