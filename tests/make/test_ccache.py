"""What ccache is told of a build, beyond what it sees itself."""

import json

import pytest

from builder.make import ccache
from builder.toolchain import Toolchain
from tests.given.jobs import job, tool


def told(tmp_path, files, *, include=(), **values):
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    ccache.write(job(files, **values), scratch=scratch, base=scratch, include=include)
    return json.loads((scratch / "ccache.inputs").read_text()), (scratch / "ccache.conf").read_text()


@pytest.fixture
def torch(tmp_path):
    """A folder of headers with more than any kernel includes."""
    for name in ("ATen", "c10", "torch"):
        (tmp_path / "include" / name).mkdir(parents=True)
    (tmp_path / "include/xnnpack.h").write_text("")
    return tmp_path / "include"


def test_compilers_are_known_by_all_their_parts(tmp_path):
    _, first = told(tmp_path, {})
    _, second = told(tmp_path, {}, toolchain=Toolchain(cxx=tool(digest="1"), cc=tool()))
    assert [line for line in first.splitlines() if line not in second] == [
        line for line in first.splitlines() if line.startswith("compiler_check = string:")
    ]


def test_a_new_header_counts_and_a_new_source_or_python_file_does_not(tmp_path):
    one, _ = told(tmp_path, {"csrc/one.cpp": "", "csrc/a.h": ""})
    assert told(tmp_path, {"csrc/one.cpp": "", "csrc/a.h": "", "csrc/two.cu": "", "x/__init__.py": ""})[0] == one
    assert told(tmp_path, {"csrc/one.cpp": "", "csrc/a.h": "", "csrc/b.cuh": ""})[0] != one


def test_another_tree_of_a_foreign_source_counts_wherever_the_store_is(tmp_path):
    one, _ = told(tmp_path, {}, sources={"cut": tmp_path / "store/1/tree"})
    assert told(tmp_path, {}, sources={"cut": tmp_path / "elsewhere/1/tree"})[0] == one
    assert told(tmp_path, {}, sources={"cut": tmp_path / "store/2/tree"})[0] != one


def test_of_other_folders_only_what_the_kernel_includes_counts(tmp_path, torch):
    """So the objects of sources that include nothing of torch are the same for another torch."""
    files = {"one.cu": "#include <cuda_fp16.h>\n# include <torch/csrc/stable/library.h>\n"}
    assert told(tmp_path, files, include=[torch])[0]["folders"] == [["torch"]]
    (torch / "cuda_fp16.h").write_text("")
    assert told(tmp_path, files, include=[torch])[0]["folders"] == [["cuda_fp16.h", "torch"]]


def test_an_include_that_a_macro_spells_may_find_anything(tmp_path, torch):
    inputs, _ = told(tmp_path, {"one.cu": "#include HEADER\n"}, include=[torch])
    assert inputs["folders"] == [["ATen", "c10", "torch", "xnnpack.h"]]


@pytest.mark.parametrize("text", ['.incbin "blob"', "#embed <blob>", '#  embed "blob"'])
def test_where_other_files_are_read_the_whole_project_counts(tmp_path, text):
    assert "project" not in told(tmp_path, {"one.cpp": "// nothing"})[0]
    assert told(tmp_path, {"one.cpp": text, "blob": "1"})[0] != told(tmp_path, {"one.cpp": text, "blob": "2"})[0]


def test_a_comment_of_python_reads_no_file_and_includes_none(tmp_path, torch):
    files = {"one.cpp": "// nothing", "x/__init__.py": "# embed the tokens, __has_include(x)\n# include others\n"}
    found = told(tmp_path, files, include=[torch])[0]
    assert not {"project", "framework"} & set(found)
    assert found["folders"] == [[]]


@pytest.mark.parametrize("text", ["__has_include(<x>)", "__has_include_next(<x>)", "__has_embed(<x>)"])
def test_where_files_are_asked_for_the_framework_counts(tmp_path, text):
    assert "framework" not in told(tmp_path, {"one.cpp": "// nothing"})[0]
    assert told(tmp_path, {"one.cpp": f"#if {text}"})[0]["framework"] == ["2.13.0", ""]


def test_in_nix_an_object_does_not_depend_on_the_text_of_other_sources(tmp_path, torch):
    """There each file is compiled without the text of the others, and the environment is an input in any case."""
    whole = {"one.cpp": "#include <torch/all.h>\n", "two.cpp": "#if __has_include(<x>)\n#include <c10/x.h>\n"}
    alone = {"one.cpp": whole["one.cpp"], "two.cpp": ""}
    assert told(tmp_path, whole, include=[torch], enclosed=True) == told(
        tmp_path, alone, include=[torch], enclosed=True
    )
