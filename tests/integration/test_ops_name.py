"""The name of the ops is linked: real objects do not change with it, and two builds of a kernel live in one process."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.given.files import once, tree
from tests.integration import rendered

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cmake,
    pytest.mark.torch,
    rendered.needs_torch,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at objects of Linux"),
]
COMPONENTS = '\n[kernel.one]\nbackend = "cpu"\ndepends = ["torch"]\nsrc = ["one.cpp", "own.cpp"]\n'
ONE = "#include <cstdint>\nint64_t own();\nint64_t answer() { return ANSWER + own(); }\n"
OWN = """
#include <cstdint>
#include <cstring>
#define TEXT_OF(X) #X
#define TEXT(X) TEXT_OF(X)
int64_t own() { return 1000 * std::strlen(TEXT(TORCH_EXTENSION_NAME)); }
"""
LOAD = """
import sys, torch
for path in sys.argv[1:]:
    torch.ops.load_library(path)
    name = path.rpartition("/")[2].removesuffix(".so")
    print(getattr(torch.ops, name).answer(torch.zeros(1)), 1000 * len(name))
"""


@pytest.fixture(scope="session")
def built(shared):
    """Build a kernel twice, in another folder and under another name; one of its sources uses the name itself."""
    needs.program("g++")
    folders = [shared / "ops-name" / name for name in ("first", "the_second")]
    with once(shared / "ops-name") as empty:
        for folder in folders if empty else ():
            files = {"one.cpp": ONE.replace("ANSWER", "41"), "own.cpp": OWN}
            kernel = rendered.small_kernel(folder / "kernel", COMPONENTS, files)
            rendered.write_project(kernel, "cpu", folder / "project", unique_id=folder.name)
            done = rendered.configure(folder / "project", folder / "work")
            assert done.returncode == 0, done.output
            rendered.compile_and_install(folder / "work", folder / "installed")
    libraries = [next((folder / "installed").glob("*/*.so")) for folder in folders]
    objects = [
        {path: content for path, content in tree(folder / "work").items() if path.endswith(".o")} for folder in folders
    ]
    return list(zip(libraries, objects, strict=True))


def test_only_the_sources_that_use_the_name_depend_on_it(built):
    (_, one), (_, two) = built
    assert one.keys() == two.keys()
    assert {Path(path).name for path in one if one[path] != two[path]} == {"ops_name.cpp.o", "own.cpp.o"}


def test_two_builds_live_in_one_process_and_each_knows_its_name(built):
    command = [sys.executable, "-c", LOAD, *(str(library) for library, _ in built)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    values = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert [value for value, _ in values] == [41 + length for _, length in values]
    assert len({value for value, _ in values}) == 2


def test_the_name_is_no_symbol_of_the_library(built):
    for library, _ in built:
        listed = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
        assert "kernel_ops_name" not in listed
