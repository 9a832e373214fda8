"""Calls of functions that glibc 2.28 has not are found before the build."""

import re
import subprocess

import pytest

from builder import lint, resources, toml
from tests.given.files import write

CONFIG = """
[general]
name = "copy"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu"]
[torch]
src = ["torch-ext/torch_binding.cpp"]
[kernel.copy]
backend = "cpu"
depends = ["torch"]
src = ["copy.cpp"]
"""


FILES = {
    "build.toml": CONFIG,
    "torch-ext/torch_binding.cpp": "",
    "torch-ext/copy/__init__.py": "from ._ops import ops\n",
}


@pytest.fixture
def found(tmp_path):
    """Return the findings in a kernel with this source."""
    return lambda source: [
        located
        for located in lint.inspect(write(tmp_path, {**FILES, "copy.cpp": source})).found
        if located.problem.code == "B127"
    ]


def test_a_call_is_named_with_its_file_line_and_version(found):
    (one,) = found("#include <string.h>\nvoid f(char* a) {\n  strlcpy(a, a, 1); strlcpy(a, a, 2);\n}\n")
    assert one.file.endswith("copy.cpp")
    assert (one.problem.span.line, one.problem.span.column, one.problem.severity) == (3, 3, "warning")
    assert "strlcpy is of glibc 2.38" in one.problem.message
    assert "--manylinux" in one.problem.help


@pytest.mark.parametrize("code", ["::arc4random();", "arc4random ();", "if(arc4random()) ;"])
def test_a_call_is_found_however_it_is_spelled(found, code):
    assert len(found(f"void f() {{ {code} }}\n")) == 1


@pytest.mark.parametrize(
    "code",
    [
        "mine::strlcpy(a);",
        "x.strlcpy(a);",
        "x->strlcpy(a);",
        "my_strlcpy(a);",
        "// strlcpy(a)",
        'g("strlcpy(a)");',
        "log2(2); stat(a, b);",
    ],
)
def test_what_is_no_call_of_it_is_not_found(found, code):
    assert found(f"void f() {{ {code} }}\n") == []


@pytest.mark.cmake
def test_the_c_library_of_this_machine_has_them_in_these_versions():
    path = subprocess.run(["g++", "-print-file-name=libc.so.6"], capture_output=True, text=True, check=True).stdout
    text = subprocess.run(["nm", "-D", path.strip()], capture_output=True, text=True, check=True).stdout
    table = toml.loads((resources.DATA / "glibc-newer.toml").read_text(encoding="utf-8"))
    known = {name: version for version, names in table.items() for name in names}
    here: dict[str, str] = {}
    for name, version in re.findall(r" [TWi] ([a-z]\w*)@@?GLIBC_([0-9.]+)$", text, re.MULTILINE):
        here[name] = min(here.get(name, version), version, key=lambda text: [int(part) for part in text.split(".")])
    assert {name: here[name] for name in known if name in here} == {name: known[name] for name in known if name in here}
