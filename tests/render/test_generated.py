"""Steps of a rendered project that write sources: run by plain CMake, with their inputs and nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from builder import lint, toml
from builder.config import Backend
from builder.errors import ConfigError
from builder.kernel import load
from builder.render import quoting, render
from builder.resources import CMAKE
from tests.given.files import write
from tests.given.processes import tool
from tests.render.small import kernel

STEP = '[[generate]]\nscript = "tools/make.py"\ninputs = ["tools/*.in"]\noutputs = ["made/a.cpp", "inc/deep/a.h"]\n'
FILES = {"tools/make.py": "raise SystemExit('a static command ran it')", "tools/a.in": "", "tools/b.txt": ""}


OTHER = '[kernel.two]\nbackend = "cpu"\ndepends = []\nsrc = ["made/a.cpp"]\n'


def small(root, *, step=STEP, files=FILES, component='include = ["inc"]', other=OTHER, **keys):
    return kernel(root, component=component, extra=other + step, files=files, **keys)


def test_outputs_are_compiled_from_the_build_folder(tmp_path):
    project = render(small(tmp_path), Backend.CPU)
    lists = project["CMakeLists.txt"]
    assert '    "${CMAKE_CURRENT_BINARY_DIR}/generated/made/a.cpp"\n' in lists
    assert '  INCLUDE_DIRS\n    inc\n    "${CMAKE_CURRENT_BINARY_DIR}/generated/inc"\n' in lists
    assert {"tools/make.py", "tools/a.in", "cmake/generate/run.py"} <= set(project.files)
    assert "tools/b.txt" not in project.files


def test_a_step_that_a_backend_does_not_use_is_not_rendered_for_it(tmp_path):
    step = STEP.replace('["made/a.cpp", "inc/deep/a.h"]', '["made/b.cu"]')
    small(tmp_path, step=step, other=OTHER.replace("cpu", "cuda").replace("a.cuda", "b.cu").replace("a.cpp", "b.cu"))
    text = (tmp_path / "build.toml").read_text(encoding="utf-8").replace('["cpu"]', '["cpu", "cuda"]', 1)
    loaded = load(write(tmp_path, {"build.toml": text}))
    assert "generate" not in render(loaded, Backend.CPU)["CMakeLists.txt"]
    assert "kernel_generate_step" in render(loaded, Backend.CUDA)["CMakeLists.txt"]


def test_a_step_whose_output_another_one_needs_is_rendered_with_it(tmp_path):
    first = '[[generate]]\nscript = "tools/make.py"\noutputs = ["x.json"]\n'
    project = render(small(tmp_path, step=first + STEP.replace('"tools/*.in"', '"x.json"')), Backend.CPU)
    assert "  GENERATED_INPUTS\n    x.json\n" in project["CMakeLists.txt"]


def test_no_static_command_runs_a_script(tmp_path):
    found = small(tmp_path)
    assert not lint.inspect(tmp_path).refused
    render(found, Backend.CPU)


def test_an_output_that_is_a_file_of_the_kernel_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"'made/a\.cpp' is an output of a step, and there is a file of that name"):
        render(small(tmp_path, files={**FILES, "made/a.cpp": ""}), Backend.CPU)


@pytest.mark.parametrize(("script", "input_"), [("tools/none.py", "tools/a.in"), ("tools/make.py", "tools/none.in")])
def test_a_script_or_an_input_that_is_not_there_is_told(tmp_path, script, input_):
    step = STEP.replace("tools/make.py", script).replace("tools/*.in", input_)
    with pytest.raises(ConfigError, match=r"the file 'tools/none\.\w+' does not exist"):
        render(small(tmp_path, step=step), Backend.CPU)


def test_an_edit_of_the_script_or_of_an_input_is_another_project(tmp_path):
    digests = {render(small(tmp_path), Backend.CPU).digest}
    for name in ("tools/make.py", "tools/a.in"):
        digests.add(render(small(tmp_path, files={**FILES, name: "# changed"}), Backend.CPU).digest)
    assert len(digests) == 3


def test_a_generated_source_of_cuda_is_refused_for_rocm(tmp_path):
    step = STEP.replace('["made/a.cpp", "inc/deep/a.h"]', '["made/b.cu"]')
    other = OTHER.replace('"cpu"', '"rocm"').replace("made/a.cpp", "made/b.cu")
    with pytest.raises(ConfigError, match="only the kernel's own files become HIP"):
        render(small(tmp_path, backend="rocm", step=step, other=other), Backend.ROCM)


def test_globs_of_file_flags_and_exclude_name_outputs_and_files_of_foreign_trees(tmp_path):
    rev = "1" * 40
    foreign = f'[sources.cut]\ngit = "https://example.org/cut"\nrev = "{rev}"\n'
    other = OTHER.replace('a.cpp"]', 'a.cpp", "cut:x/b.c", "cut:x/c.cpp", "one.cpp"]')
    flags = 'file-flags = { "made/*" = ["-O1"], "cut:x/*.c" = ["-O2"] }\nexclude = ["cut:x/c*"]\n'
    lists = render(small(tmp_path, other=other + flags + foreign), Backend.CPU)["CMakeLists.txt"]
    assert '    "${CMAKE_CURRENT_BINARY_DIR}/generated/made/a.cpp"\n  FILE_FLAGS\n    -O1\n' in lists
    assert '    "${cut_SOURCE_DIR}/x/b.c"\n  FILE_FLAGS\n    -O2\n' in lists
    assert "c.cpp" not in lists
    assert "project(tiny LANGUAGES C CXX)" in lists


HOSTILE = st.lists(
    st.sampled_from(
        ["{archs}", "{torch}", *"\"'$;)(@#\\<>%` x&|*~!é", "${HOME}", "$<1:x>", "--", "]]", "%PATH%", "$(id)"]
    ),
    min_size=1,
    max_size=8,
).map("".join)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(argument=HOSTILE, path=HOSTILE)
def test_no_argument_becomes_syntax_of_cmake(tmp_path, argument, path):
    spelled = toml.spelled(argument), toml.spelled(f"made/{path}.cpp")
    step = STEP.replace("inputs", f"args = [{spelled[0]}]\ninputs").replace(
        '"made/a.cpp"', f'"made/a.cpp", {spelled[1]}'
    )
    try:
        lists = render(small(tmp_path, step=step, component='include = ["inc", "made"]'), Backend.CPU)["CMakeLists.txt"]
    except ConfigError as error:
        assert all(problem.span is not None for problem in error.problems)  # noqa: PT017  some are refused
        return
    assert f"  ARGS\n    {quoting.cmake(argument)}\n" in lists


def build(root, script, call="", *, before="", files=None):
    """Build a project without a compiler whose target needs what a script writes."""
    (root / "p/tools").mkdir(parents=True, exist_ok=True)
    for name, text in {"tools/make.py": script, "tools/a.in": "input", **(files or {})}.items():
        (root / "p" / name).write_text(text, encoding="utf-8")
    lists = f"""
cmake_minimum_required(VERSION 3.26...4.3)
project(p LANGUAGES NONE)
set(Python_EXECUTABLE "{sys.executable}")
include("{CMAKE}/generate/step.cmake")
add_custom_target(all-of-it ALL)
{before}
kernel_generate_step(all-of-it SCRIPT tools/make.py INPUTS tools/a.in OUTPUTS made/a.txt {call})
"""
    (root / "p/CMakeLists.txt").write_text(lists, encoding="utf-8")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "SECRET": "secret"}
    commands = (
        [tool("cmake"), "-S", root / "p", "-B", root / "b", "-GNinja"],
        [tool("cmake"), "--build", root / "b"],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        if done.returncode != 0:
            break
    return done


def written(root, name="made/a.txt"):
    return (root / "b/generated" / name).read_text(encoding="utf-8")


WRITE = "import os, sys\nwith open('made/a.txt', 'w', encoding='utf-8') as file:\n    file.write({})\n"


@pytest.mark.cmake
def test_a_script_is_run_with_its_inputs_and_variables_that_are_the_same_everywhere(tmp_path):
    said = "repr((open('tools/a.in').read(), sorted(os.listdir()), sorted(os.environ), os.environ['PYTHONHASHSEED']))"
    done = build(tmp_path, WRITE.format(said))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "('input', ['made', 'tools'], " in written(tmp_path)
    assert "SECRET" not in written(tmp_path)
    assert written(tmp_path).endswith("'0')")


@pytest.mark.cmake
def test_an_edit_runs_the_script_again_and_nothing_else_does(tmp_path):
    count = "with open(os.path.expanduser('{}'), 'a') as file:\n    file.write('x')\n"
    script = WRITE.format("open('tools/a.in').read()") + count.format(tmp_path / "runs")
    for text in ("one", "one", "two"):
        build(tmp_path, script, files={"tools/a.in": text} if not (tmp_path / "b").exists() or text == "two" else {})
    assert written(tmp_path) == "two"


@pytest.mark.cmake
@pytest.mark.parametrize(
    ("script", "said"),
    [
        pytest.param("", "it did not write its output 'made/a.txt'", id="nothing"),
        pytest.param(WRITE.format("''") + "open('made/b', 'w')", "it wrote 'made/b', which is not among", id="more"),
        pytest.param(WRITE.format("''") + "open('tools/a.in', 'w')", "it changed its input 'tools/a.in'", id="input"),
        pytest.param("import os\nos.symlink('/etc/passwd', 'made/a.txt')", "'made/a.txt' is not a file", id="link"),
        pytest.param("import os\nos.mkdir('made/a.txt')", "it did not write its output 'made/a.txt'", id="folder"),
        pytest.param("raise ValueError('no heads')", "ValueError: no heads", id="exception"),
        pytest.param("open('tools/b.in')", "No such file or directory: 'tools/b.in'", id="undeclared input"),
        pytest.param("raise SystemExit(3)", "exit code 3", id="exit"),
    ],
)
def test_a_script_that_does_not_do_what_its_step_says_fails_like_a_compiler(tmp_path, script, said):
    done = build(tmp_path, script, files={"tools/b.in": ""})
    assert done.returncode != 0
    assert "tools/make.py: error: " in done.stdout
    assert said in done.stdout
    assert not (tmp_path / "b/generated/made/a.txt").exists()


@pytest.mark.cmake
def test_placeholders_are_what_the_target_is_compiled_for(tmp_path):
    before = """
set_target_properties(all-of-it PROPERTIES KERNEL_ARCHITECTURES "9.0a;8.0;9.0a;10.0" KERNEL_TOOLKIT "CUDA 13.0.88")
add_library(kernel::torch INTERFACE IMPORTED)
set_target_properties(kernel::torch PROPERTIES KERNEL_VERSION 2.10.1)
"""
    done = build(tmp_path, WRITE.format("repr(sys.argv[1:])"), 'ARGS "--a={archs}" "{toolkit}/{torch}"', before=before)
    assert done.returncode == 0, done.stdout + done.stderr
    assert written(tmp_path) == "['--a=8.0,9.0a,10.0', '13.0/2.10']"


@pytest.mark.cmake
@pytest.mark.parametrize(
    "generator",
    [
        "Ninja",
        pytest.param(
            "Unix Makefiles", marks=pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
        ),
    ],
)
def test_all_objects_wait_for_generated_headers(tmp_path, generator):
    script = "import time\ntime.sleep(1)\nopen('inc/a.h', 'w').write('const int a = 0;\\n')\n"
    script += "open('made/a.cpp', 'w').write('#include <a.h>\\nint made() { return a; }\\n')\n"
    lists = f"""
cmake_minimum_required(VERSION 3.26...4.3)
project(p LANGUAGES CXX)
set(Python_EXECUTABLE "{sys.executable}")
include("{CMAKE}/generate/step.cmake")
include("{CMAKE}/objects/add.cmake")
add_library(kernel MODULE one.cpp "${{CMAKE_CURRENT_BINARY_DIR}}/generated/made/a.cpp")
kernel_objects_add(objects kernel two)
target_sources("${{objects}}" PRIVATE two.cpp)
kernel_generate_step(kernel SCRIPT make.py OUTPUTS made/a.cpp inc/a.h)
foreach(target IN ITEMS kernel "${{objects}}")
  target_include_directories("${{target}}" PRIVATE "${{CMAKE_CURRENT_BINARY_DIR}}/generated/inc")
  set_target_properties("${{target}}" PROPERTIES POSITION_INDEPENDENT_CODE ON)
endforeach()
"""
    (tmp_path / "p").mkdir()
    source = "#include <a.h>\nint {}() {{ return a; }}\n"
    files = {
        "CMakeLists.txt": lists,
        "make.py": script,
        "one.cpp": source.format("one"),
        "two.cpp": source.format("two"),
    }
    for name, text in files.items():
        (tmp_path / "p" / name).write_text(text, encoding="utf-8")
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in (["-S", tmp_path / "p", "-B", tmp_path / "b", f"-G{generator}"], ["--build", tmp_path / "b", "-j4"]):
        done = subprocess.run([tool("cmake"), *command], capture_output=True, text=True, check=False, env=env)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.cmake
def test_what_a_build_does_not_have_is_an_empty_argument(tmp_path):
    done = build(tmp_path, WRITE.format("repr(sys.argv[1:])"), 'ARGS "{archs}" "--t={toolkit}" last')
    assert done.returncode == 0, done.stdout + done.stderr
    assert written(tmp_path) == "['', '--t=', 'last']"


def assert_unchanged(tmp_path, arguments):
    plain = [each for each in arguments if quoting.why_not_cmake(each) is None and "{" not in each]
    call = " ".join(["ARGS", *map(quoting.cmake, plain)]) if plain else ""
    shutil.rmtree(tmp_path / "b", ignore_errors=True)
    done = build(tmp_path, WRITE.format("repr(sys.argv[1:])"), call)
    assert done.returncode == 0, done.stdout + done.stderr
    assert written(tmp_path) == repr(plain)


FEW, MANY = (
    settings(max_examples=number, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    for number in (3, 12)
)


@pytest.mark.cmake
@FEW
@example(
    ["$HOME", "$(id)", "`id`", "a b", '"', "'", "\\", "%PATH%", "&& id", "|", ">x", "é", "-x", "--input=/etc/passwd"]
)
@given(st.lists(HOSTILE, min_size=1, max_size=6))
def test_arguments_reach_the_script_through_cmake_and_ninja_unchanged(tmp_path, arguments):
    assert_unchanged(tmp_path, arguments)


@pytest.mark.cmake
@pytest.mark.slow
@MANY
@given(st.lists(HOSTILE, min_size=1, max_size=6))
def test_each_of_many_arguments_reaches_the_script_unchanged(tmp_path, arguments):
    assert_unchanged(tmp_path, arguments)
