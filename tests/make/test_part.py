"""Parts of the objects of a cell."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.errors import BuilderError
from builder.make import part
from builder.make.part import BuildPart, SourceFile


@given(st.integers(1, 9999), st.integers(1, 9999))
def test_a_part_is_read_as_it_is_written(one, other):
    first = BuildPart(number=min(one, other), of=max(one, other))
    assert BuildPart.parse(str(first)) == first


@pytest.mark.parametrize(
    "text", ["", "1", "0/4", "5/4", "1/0", "-1/4", "1/4/2", "a/b", "1 / 4", "01/4", "1/99999", "\u0661/4"]
)
def test_what_is_no_part_is_refused(text):
    with pytest.raises(BuilderError, match="not a part such as 1/4"):
        BuildPart.parse(text)


PROJECT = """\
cmake_minimum_required(VERSION 3.26)
project(parts LANGUAGES C)
add_library(parts STATIC one.c two.c sub/one.c)
"""


@pytest.mark.cmake
@pytest.mark.parametrize(
    ("wanted", "made"),
    [
        pytest.param(SourceFile(source="one.c"), {"one.c.o"}, id="a source"),
        pytest.param(SourceFile(source="sub/one.c"), {"sub/one.c.o"}, id="a source in a folder"),
        pytest.param(SourceFile(source="none.c"), set(), id="what is not compiled"),
        pytest.param(BuildPart(number=2, of=3), {"one.c.o"}, id="a part"),
    ],
)
def test_exactly_what_is_wanted_is_compiled(tmp_path, wanted, made):
    for name, text in {"one": "int a;\n", "two": "int b; /* the largest */\n", "sub/one": "int c;"}.items():
        path = tmp_path / f"src/{name}.c"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "src/CMakeLists.txt").write_text(PROJECT)
    command = part.frontend(Path(sys.executable), wanted, base=tmp_path, arguments=["-GNinja"])
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(command, check=True, capture_output=True, env=env)
    objects = tmp_path / "build/CMakeFiles/parts.dir"
    assert {path.relative_to(objects).as_posix() for path in objects.rglob("*.o")} == made
    assert part.counts(tmp_path) == (len(made), 3)
