"""`file-flags` in a rendered project, and components with a source in common."""

import pytest

from builder.config import Backend
from builder.errors import ConfigError
from builder.kernel import load
from builder.kernel.source_set import source_set
from builder.render import render
from tests.render.small import kernel

FILES = {"csrc/a256_x.cpp": "", "csrc/a256_y.cpp": "", "csrc/b.cpp": "", "csrc/b.h": ""}
LISTED = '\n[kernel.two]\nbackend = "{backend}"\ndepends = []\nsrc = ["csrc/*.cpp", "csrc/b.h"]\n'


def loaded(tmp_path, lines, *, backend="cpu", files=FILES, **tables):
    return kernel(tmp_path, backend=backend, extra=LISTED.format(backend=backend) + lines, files=files, **tables)


def lists(tmp_path, lines, *, backend="cpu", **tables):
    return render(loaded(tmp_path, lines, backend=backend, **tables), Backend(backend))["CMakeLists.txt"]


def flags(*sources, given):
    lines = "".join(f"    {source}\n" for source in sources)
    return f"kernel_file_flags(\n  SOURCES\n{lines}  FILE_FLAGS\n" + "".join(f"    {flag}\n" for flag in given) + ")\n"


@pytest.mark.parametrize("backend", ["cpu", "cuda", "rocm", "xpu", "metal"])
def test_the_sources_of_a_glob_get_its_flags_after_those_of_the_component(tmp_path, backend):
    text = lists(tmp_path, 'file-flags = { "csrc/a256_*" = ["-O1", "-fno-x"] }', backend=backend)
    call = flags("csrc/a256_x.cpp", "csrc/a256_y.cpp", given=["-O1", "-fno-x"])
    assert text.index(f"kernel_{backend}_component(\n  _tiny_{backend}\n  NAME two") < text.index(call)
    assert text.count("kernel_file_flags") == 1


def test_each_entry_is_a_call_in_the_order_of_the_file(tmp_path):
    text = lists(tmp_path, '[kernel.two.file-flags]\n"csrc/*.cpp" = ["-O1"]\n"csrc/b.cpp" = ["-O0"]\n')
    assert text.index("-O1") < text.index(flags("csrc/b.cpp", given=["-O0"]))


@pytest.mark.parametrize("framework", ["torch", "tvm-ffi"])
def test_a_binding_has_flags_of_single_sources_too(tmp_path, framework):
    package = "tvm-ffi-ext" if framework == "tvm-ffi" else "torch-ext"
    loaded_ = kernel(tmp_path, framework=framework, torch=f'file-flags = {{ "{package}/*" = ["-O1"] }}')
    assert flags(f"{package}/binding.cpp", given=["-O1"]) in render(loaded_, Backend.CPU)["CMakeLists.txt"]


@pytest.mark.parametrize("glob", ["csrc/a512_*", "csrc/b.h", "one.cpp", "csrc", "*.cpp", "-rf"])
def test_a_glob_that_names_no_source_is_refused_at_its_key(tmp_path, glob):
    with pytest.raises(ConfigError) as caught:
        source_set(loaded(tmp_path, f'file-flags = {{ "csrc/b.cpp" = ["-O1"], "{glob}" = ["-O1"] }}'))
    (problem,) = caught.value.problems
    assert (problem.code, problem.key) == ("B041", ("kernel", "two", "file-flags", glob))
    assert problem.span is not None


def test_a_glob_that_names_only_what_is_excluded_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"no source matches 'csrc/b\.cpp'"):
        source_set(loaded(tmp_path, 'exclude = ["csrc/b.*"]\nfile-flags = { "csrc/b.cpp" = ["-O1"] }'))


@pytest.mark.parametrize(
    ("flag", "code"), [("a;b", "B060"), ("$<1:x>", "B060"), ("-fplugin=x", "B061"), ("@x", "B061")]
)
def test_a_flag_is_judged_as_those_of_a_component(tmp_path, flag, code):
    with pytest.raises(ConfigError) as caught:
        lists(tmp_path, f'file-flags = {{ "csrc/b.cpp" = ["-O1", "{flag}"] }}')
    (problem,) = caught.value.problems
    assert (problem.code, problem.key) == (code, ("kernel", "two", "file-flags", "csrc/b.cpp", 1))
    assert problem.span is not None


def test_a_shader_takes_no_flags_of_its_own(tmp_path):
    files = {**FILES, "csrc/s.metal": ""}
    lines = 'file-flags = { "csrc/*.m*" = ["-O1"] }'
    text = LISTED.format(backend="metal").replace('"csrc/b.h"', '"csrc/s.metal"') + lines
    with pytest.raises(ConfigError) as caught:
        render(kernel(tmp_path, backend="metal", extra=text, files=files), Backend.METAL)
    assert [problem.code for problem in caught.value.problems] == ["B064"]


# --- a source of two components ---

AGAIN = '\n[kernel.three]\nbackend = "cpu"\ndepends = []\nsrc = ["csrc/b.cpp"]\n'


def test_components_that_share_a_source_have_objects_of_their_own(tmp_path):
    text = lists(tmp_path, f"defines = {{ N = 1 }}\n{AGAIN}defines = {{ N = 2 }}\n")
    assert "  NAME two\n  OBJECTS_OF two\n" in text
    assert "  NAME three\n  OBJECTS_OF three\n" in text
    assert "OBJECTS_OF one" not in text
    assert text.count("kernel_objects_finish(_tiny_cpu)\n") == 1


def test_one_of_them_with_a_key_of_ours_is_enough(tmp_path):
    text = lists(tmp_path, f'cxx-flags = ["-O1"]\n{AGAIN}file-flags = {{ "**/*" = ["-O2"] }}\n')
    assert text.count("  OBJECTS_OF two\n") == 1
    assert "kernel_file_flags(\n  OBJECTS_OF three\n  SOURCES\n    csrc/b.cpp\n" in text


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(f'cxx-flags = ["-O1"]\n{AGAIN}cxx-flags = ["-O2"]\n', id="no key of ours"),
        pytest.param(f"defines = {{ N = 1 }}\n{AGAIN}defines = {{ N = 1 }}\n", id="the same settings"),
        pytest.param(f"{AGAIN.replace('csrc/b', 'more/c')}defines = {{ N = 1 }}\n", id="no common source"),
        pytest.param(f"{AGAIN.replace('b.cpp', 'b.h')}defines = {{ N = 1 }}\n", id="a common header"),
    ],
)
def test_others_are_compiled_once_as_by_the_public_builder(tmp_path, lines):
    assert "OBJECTS_OF" not in lists(tmp_path, lines, files={**FILES, "more/c.cpp": ""})


def test_what_shares_with_one_that_shares_is_apart_too(tmp_path):
    more = AGAIN.replace("three", "four").replace('"csrc/b.cpp"', '"csrc/b.cpp", "one.cpp"')
    text = lists(tmp_path, f"defines = {{ N = 1 }}\n{more}")
    assert [name for name in ("one", "two", "four") if f"  OBJECTS_OF {name}\n" in text] == ["one", "two", "four"]


def test_a_binding_that_shares_a_source_has_objects_of_its_own(tmp_path):
    loaded(tmp_path, "defines = { N = 1 }\n")
    config = tmp_path / "build.toml"
    text = config.read_text(encoding="utf-8").replace('binding.cpp"]', 'binding.cpp", "csrc/b.cpp"]')
    config.write_text(text, encoding="utf-8")
    assert "  OBJECTS_OF +binding\n" in render(load(tmp_path), Backend.CPU)["CMakeLists.txt"]
