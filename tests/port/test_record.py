"""What a setup.py asks for is recorded, whatever it does besides."""

import os
import time

import pytest

from builder import sandbox
from builder.errors import BuilderError, NothingToDoError, ToolError
from builder.port.record import record
from tests.port.projects import CUDA, OLD, PLAIN, ROCM, SIMPLE, recorded, write

HEAD = """
import os, subprocess, sys
from setuptools import Extension, find_packages, setup
import torch
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CppExtension, CUDAExtension
"""


def test_sources_flags_macros_and_folders_are_those_of_the_call(tmp_path):
    (run,) = recorded(tmp_path, SIMPLE).runs
    (extension,) = run.extensions
    assert run.failure is None
    assert (extension.kind, extension.name, extension.at) == ("CUDAExtension", "scale_it._C", "setup.py:10")
    assert extension.sources == ("csrc/binding.cpp", "csrc/scale.cu")
    assert extension.define_macros == (("WITH_X", None), ("WIDTH", "4"))
    assert extension.nvcc_flags == ("-O3", "--use_fast_math")
    assert extension.include_dirs == ("csrc",)
    assert run.setup.texts["version"] == "2.1"


def test_paths_of_the_tree_are_relative_and_those_of_the_toolkit_have_a_name(tmp_path):
    text = (
        HEAD
        + """
here = os.path.dirname(os.path.abspath(__file__))
setup(name="x", ext_modules=[CUDAExtension("x", [os.path.join(here, "csrc/scale.cu")],
      include_dirs=[here, os.path.join(CUDA_HOME, "include")])])
"""
    )
    (run,) = recorded(tmp_path, text).runs
    assert run.extensions[0].sources == ("csrc/scale.cu",)
    assert run.extensions[0].include_dirs == (".", "<cuda>/include")


def test_the_toolkit_of_each_run_answers_for_nvcc(tmp_path):
    text = (
        HEAD
        + """
said = subprocess.check_output([CUDA_HOME + "/bin/nvcc", "-V"], text=True)
version = said.split("release ")[1].split(",")[0]
setup(name="x", ext_modules=[CUDAExtension("x", ["csrc/scale.cu"], extra_compile_args=["-DV=" + version])])
"""
    )
    runs = recorded(tmp_path, text, OLD, CUDA).runs
    assert [run.extensions[0].nvcc_flags for run in runs] == [("-DV=12.6",), ("-DV=13.0",)]
    assert runs[0].events[0].kind == "command"


def test_torch_answers_what_a_machine_with_and_without_a_gpu_would(tmp_path):
    text = (
        HEAD
        + """
kind = CUDAExtension if torch.cuda.is_available() and torch.version.cuda else CppExtension
flags = ["-DABI=%d" % torch._C._GLIBCXX_USE_CXX11_ABI, "-DNEW=%d" % (torch.__version__ >= "2.9")]
flags += ["-DHIP"] if torch.version.hip else []
setup(name="x", ext_modules=[kind("x", ["csrc/binding.cpp"], extra_compile_args=flags)])
"""
    )
    found = {run.setting: run.extensions[0] for run in recorded(tmp_path, text, CUDA, PLAIN, ROCM).runs}
    assert [found[each].kind for each in (CUDA, PLAIN, ROCM)] == ["CUDAExtension", "CppExtension", "CppExtension"]
    assert found[CUDA].cxx_flags == ("-DABI=1", "-DNEW=1")
    assert found[ROCM].cxx_flags[-1] == "-DHIP"


def test_a_class_of_build_extension_and_options_of_it_are_taken(tmp_path):
    text = (
        HEAD
        + """
class Build(BuildExtension):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
options = BuildExtension.with_options(use_ninja=False)
setup(name="x", packages=find_packages(exclude=["tests*"]), ext_modules=[CppExtension("x", ["csrc/binding.cpp"])],
      cmdclass={"build_ext": Build, "other": options})
"""
    )
    (run,) = recorded(tmp_path, text, files={"scale_it/ops/__init__.py": "", "tests/__init__.py": ""}).runs
    assert run.setup.lists["packages"] == ("scale_it", "scale_it.ops")


def test_extensions_that_are_not_passed_are_not_recorded(tmp_path):
    text = HEAD + "CUDAExtension('x', ['csrc/scale.cu'])\nsetup(name='x', ext_modules=[])\n"
    (run,) = recorded(tmp_path, text).runs
    assert run.extensions == ()


def test_several_extensions_keep_their_order(tmp_path):
    text = (
        HEAD
        + "b = CppExtension('b', ['csrc/binding.cpp'])\na = Extension('a', ['csrc/a.c'])\n"
        + "setup(ext_modules=[a, b])\n"
    )
    (run,) = recorded(tmp_path, text).runs
    assert [(each.name, each.kind) for each in run.extensions] == [("a", "Extension"), ("b", "CppExtension")]


def test_variables_that_the_tree_reads_are_noted_and_can_be_given(tmp_path):
    text = HEAD + "setup(name=os.getenv('NAME_OF_IT', 'none'), version=os.environ.get('IT', '1'))\n"
    (run,) = recorded(tmp_path, text, variables={"NAME_OF_IT": "given"}).runs
    assert run.setup.texts["name"] == "given"
    assert run.variables == {"NAME_OF_IT": "setup.py:6", "IT": "setup.py:6"}


def test_a_module_that_is_not_here_is_answered_by_a_stand_in(tmp_path):
    text = "import no_such_module.deep as n\n" + HEAD + "n.go(1).x\nclass A(n.Base): pass\n" + SIMPLE
    found = recorded(tmp_path, text)
    assert found.runs[0].failure is None
    assert found.pretended == ("no_such_module",)


def test_an_import_that_may_fail_fails(tmp_path):
    text = "try:\n    import no_such_module\n    found = 1\nexcept ImportError:\n    found = 0\n" + HEAD
    (run,) = recorded(tmp_path, text + "setup(name='x', version=str(found))\n").runs
    assert run.setup.texts["version"] == "0"


def test_submodules_that_are_not_fetched_are_believed_to_be_there(tmp_path):
    modules = '[submodule "lib"]\n  path = third/lib\n  url = https://example.org/lib.git\n'
    text = (
        HEAD + "assert os.path.exists('third/lib/include/lib.h')\nassert not os.path.exists('third/other')\n" + SIMPLE
    )
    found = recorded(tmp_path, text, files={".gitmodules": modules})
    assert found.runs[0].failure is None
    assert found.absent == ("third/lib",)


FAILURES = {
    "raises": ("raise RuntimeError('needs CUDA 14\\nand more')", "it raised RuntimeError: needs CUDA 14"),
    "exits": ("sys.exit(3)", "it ended itself: sys.exit(3)"),
    "ends early": ("pass", "it ended without calling setup()"),
    "does not compile": ("def (", "it raised SyntaxError: invalid syntax (line 6)"),
    "ends its process": ("os._exit(7)", "it ended its process before anything was recorded"),
    "command fails": ("subprocess.run(['false'], check=True)", "it raised CalledProcessError: Command '['false']' "),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_setup_that_fails_gets_one_line(tmp_path, name):
    line, said = FAILURES[name]
    (run,) = recorded(tmp_path, HEAD + line + "\n").runs
    assert run.failure.startswith(said)
    assert "\n" not in run.failure
    assert run.at in {"setup.py:6", ""}


def test_a_use_of_the_network_is_noted_with_its_line(tmp_path):
    text = HEAD + "import urllib.request\nurllib.request.urlopen('http://localhost:9/wheel.whl')\n"
    (run,) = recorded(tmp_path, text).runs
    assert run.failure.startswith("it raised URLError")
    assert ("network", "http://localhost:9/wheel.whl", "setup.py:7") in {
        (event.kind, event.text, event.at) for event in run.events
    }


def test_a_command_of_a_shell_is_noted_with_its_line(tmp_path):
    (run,) = recorded(tmp_path, HEAD + "os.system('git submodule update')\n" + SIMPLE).runs
    assert [(event.text, event.at) for event in run.events] == [("git submodule update", "setup.py:6")]


def test_an_endless_loop_is_ended_and_said(tmp_path):
    (run,) = recorded(tmp_path, "while True: pass\n", seconds=1).runs
    assert run.failure == "it ran longer than 1 seconds"


def test_much_output_and_junk_do_no_harm(tmp_path):
    junk = "import os\nos.write(1, b'\\xff\\x1b[2J::error::' * 2_000_000)\nprint('\\u202e' * 1000)\n"
    (run,) = recorded(tmp_path, junk + SIMPLE).runs
    assert run.failure is None


def test_what_it_writes_stays_in_a_copy_that_the_next_run_does_not_see(tmp_path):
    text = (
        HEAD
        + "assert not os.path.exists('made.cu')\nopen('made.cu', 'w').close()\nos.remove('csrc/scale.h')\n"
        + SIMPLE
    )
    runs = recorded(tmp_path, text, OLD, CUDA).runs
    assert [run.failure for run in runs] == [None, None]
    assert runs[0].written == ("made.cu",)
    assert not (tmp_path / "made.cu").exists()
    assert (tmp_path / "csrc/scale.h").exists()


def test_a_process_that_gets_away_does_not_hold_the_command(tmp_path):
    text = "import subprocess\nsubprocess.Popen(['sleep', '20'], start_new_session=True)\n" + SIMPLE
    start = time.monotonic()
    (run,) = recorded(tmp_path, text).runs
    assert run.failure is None
    assert time.monotonic() - start < 15


def test_what_is_no_file_is_not_copied(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone").symlink_to("/nowhere")
    assert recorded(tmp_path, SIMPLE).runs[0].failure is None


def test_a_result_that_was_forged_is_refused(tmp_path):
    forged = "import sys, os\nfrom pathlib import Path\npath = Path(__file__).parent.parent / 'out/result.json'\n"
    with pytest.raises(ToolError, match="wrote over what was recorded"):
        recorded(tmp_path, forged + 'path.write_text(\'{"setup": 7, "extensions": 8}\')\nos._exit(0)\n')


def test_a_folder_without_a_setup_is_refused(tmp_path):
    with pytest.raises(NothingToDoError, match=r"has no setup\.py"):
        record(tmp_path, home=None)
    with pytest.raises(BuilderError, match="is not a folder"):
        record(tmp_path / "no", home=None)


def test_a_cmake_project_is_told_of_its_option(tmp_path):
    (tmp_path / "CMakeLists.txt").touch()
    with pytest.raises(NothingToDoError, match="--compile-commands"):
        record(tmp_path, home=None)


@pytest.mark.skipif(sandbox.why_unavailable() is not None, reason=sandbox.why_unavailable() or "-")
def test_in_the_sandbox_neither_the_project_nor_the_network_nor_home_is_there(tmp_path):
    text = (
        HEAD
        + f"""
import socket
home = os.path.exists({str(tmp_path)!r})
try:
    socket.create_connection(("127.0.0.1", 9), 1)
except OSError as error:
    reached = str(error.errno)
setup(name="x", version=f"{{home}} {{reached}} {{sorted(os.listdir('/tmp'))}}")
"""
    )
    write(tmp_path, text)
    found = record(tmp_path, home=None, among=(CUDA,))
    assert found.runs[0].failure is None
    assert found.runs[0].setup.texts["version"] in {"False 101 ['builder']", "False 111 ['builder']"}
