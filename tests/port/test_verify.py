"""The compile lines of a config are those of its setup.py, or the difference is named."""

import shutil

import pytest

from builder.cli import run
from builder.port import verify
from builder.port.flags import Line, read
from builder.port.lines import CXX, GPU
from builder.port.recording import Recording
from builder.port.settings import Setting
from builder.port.verify import Difference, canonical, in_groups
from tests.port.projects import CUDA, OLD, SIMPLE, write

OLDER = Setting(name="CUDA 11.8", cuda="11.8", gpu=(9, 0))


def line(*words, include=(), language=CXX):
    return Line(language=language, flags=read(words), include=include)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["-DA=1", "-DB"], ["-DB=1", "-DA"]),
        (["-O3", "-DNDEBUG", "-ffile-prefix-map=/x=.", "-frandom-seed=1", "-std=c++20"], ["-std=c++17"]),
        (["-D__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_OPERATORS__"], []),
        (
            ["-Xcompiler=-fno-gnu-unique", "--threads=1", "--compress-mode=size", "-ccbin=/usr/bin/c++"],
            ["--threads", "4"],
        ),
        (["-DTORCH_EXTENSION_NAME=x", "-Dx_EXPORTS", "-DUSE_CUDA=1"], ["-DTORCH_EXTENSION_NAME=_C"]),
    ],
)
def test_what_every_build_has_makes_no_difference(ours, theirs):
    assert canonical(line(*ours)) == canonical(line(*theirs))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (["-DA=2"], ["-DA"]),
        (["-UA"], []),
        (["-O2"], []),
        (["-std=c++23"], []),
        (["-Xcudafe", "--diag_suppress=1"], ["-Xcudafe", "--diag_suppress=2"]),
        (["-D__CUDA_NO_HALF_OPERATORS__"], []),
    ],
)
def test_what_changes_the_code_makes_a_difference(ours, theirs):
    assert canonical(line(*ours)) != canonical(line(*theirs))


def test_include_folders_of_the_project_count_and_those_of_torch_do_not():
    assert canonical(line(include=("a", "csrc", "<torch>/include"))) == canonical(line(include=("a", "<cuda>/include")))
    assert canonical(line(include=("a",))) != canonical(line(include=("b",)))


@pytest.mark.parametrize(
    ("wanted", "found", "said"),
    [
        (["8.0"], ["8.0"], ([], [])),
        (["8.0", "9.0"], ["8.0"], (["architecture 9.0"], [])),
        (["8.0", "8.6"], ["8.0"], ([], [])),
        (["8.0"], ["8.0", "9.0a"], ([], ["architecture 9.0a"])),
        (["8.0", "5.0"], ["8.0"], ([], [])),
        ([], ["8.0"], ([], [])),
    ],
    ids=["equal", "missing", "covered", "extra", "unknown to the toolkit", "chosen by the machine"],
)
def test_architectures_are_compared_by_what_runs_their_code(wanted, found, said):
    ours, theirs = (
        line(*(f"-arch=sm_{name.replace('.', '')}" for name in names), language=GPU) for names in (wanted, found)
    )
    assert verify.architectures_of_one(ours, theirs, CUDA) == said


def test_differences_of_many_sources_are_one_line():
    found = [Difference(source=f"{name}.cu", missing=("-DA",), extra=("-g",) * (name == "b")) for name in "abc"]
    assert list(in_groups(found)) == ["a.cu and 2 more: missing -DA", "b.cu: extra -g"]


def test_a_source_that_is_compiled_twice_is_compared_twice():
    fast, slow = line("-DFAST"), line("-DSLOW")
    assert verify.difference("a.cpp", [fast, slow], [slow, fast], CUDA) is None
    found = verify.difference("a.cpp", [fast, slow], [fast], CUDA)
    assert found.missing == ("another compile of it",)


needs_tools = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler: apt-get install g++")


@pytest.mark.cmake
@needs_tools
def test_a_config_that_was_just_written_is_equal_and_an_edited_one_is_not(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(verify, "machines", lambda backends: [(next(iter(backends)), CUDA)])
    write(tmp_path, SIMPLE.replace('"--use_fast_math"', '"--use_fast_math", "-Xcudafe", "--a", "-Xcudafe", "--b"'))
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 0
    capsys.readouterr()
    assert run(["port", str(tmp_path), "--no-sandbox", "--verify"]) == 0
    assert capsys.readouterr().out == "CUDA 13.0: 2 sources equal, 0 different\n"
    text = (tmp_path / "build.toml").read_text()
    (tmp_path / "build.toml").write_text(text.replace('"--use_fast_math"', '"-lineinfo"'))
    assert run(["port", str(tmp_path), "--no-sandbox", "--verify"]) == 1
    said = capsys.readouterr()
    assert "csrc/scale.cu: missing --use_fast_math\n" in said.out
    assert "csrc/scale.cu: extra -lineinfo\n" in said.out
    assert said.err.startswith("error: build.toml and setup.py compile differently")


@pytest.mark.cmake
@needs_tools
def test_backends_that_are_not_compared_are_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(verify, "machines", lambda backends: [(next(iter(backends)), CUDA)])
    write(tmp_path, SIMPLE)
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 0
    text = (tmp_path / "build.toml").read_text()
    part = text[text.index("[kernel.") :].replace('"cuda"', '"rocm"').replace("[kernel.", "[kernel.amd-")
    part = "\n".join(line for line in part.splitlines() if not line.startswith(("cuda-", "  ", "]")))
    (tmp_path / "build.toml").write_text(
        text.replace('backends = ["cuda"]', 'backends = ["cuda", "rocm"]') + part + "\n"
    )
    capsys.readouterr()
    assert run(["port", str(tmp_path), "--no-sandbox", "--verify"]) == 0
    assert "not compared: the lines for ROCm\n" in capsys.readouterr().err


REFUSES = SIMPLE.replace("\nsetup(", "\nimport torch\nassert torch.version.cuda != '12.6', 'too old'\nsetup(")


@pytest.mark.cmake
@needs_tools
def test_a_toolkit_that_setup_py_refuses_is_left_out_in_its_own_words(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(verify, "machines", lambda backends: [(next(iter(backends)), each) for each in (OLD, CUDA)])
    write(tmp_path, REFUSES)
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 0
    capsys.readouterr()
    assert run(["port", str(tmp_path), "--no-sandbox", "--verify"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("CUDA 12.6: left out: setup.py:6: it raised AssertionError: too old")
    assert said[1] == "CUDA 13.0: 2 sources equal, 0 different"


def test_a_row_for_a_toolkit_that_setup_py_refuses_is_a_difference(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(verify, "machines", lambda backends: [(next(iter(backends)), each) for each in (OLD, OLDER)])
    write(tmp_path, REFUSES.replace("'12.6', 'too old'", "'11.8', 'too old'"))
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 0
    text = (tmp_path / "build.toml").read_text()
    (tmp_path / "build.toml").write_text(text.replace("[torch]", '[general.cuda]\nminver = "12.8"\n\n[torch]'))
    (tmp_path / "setup.py").write_text((tmp_path / "setup.py").read_text().replace("!= '11.8'", "== '12.6'"))
    capsys.readouterr()
    assert run(["port", str(tmp_path), "--no-sandbox", "--verify"]) == 1
    said = capsys.readouterr().out
    assert "CUDA 12.6: 0 sources equal, 1 different\n  setup.py: missing a row for it\n" in said
    assert "CUDA 11.8: left out: setup.py:6: it raised AssertionError: too old\n" in said


def test_an_include_folder_that_is_not_there_makes_no_difference(tmp_path):
    found = Recording(runs=(), absent=("third/lib",))
    write(tmp_path, SIMPLE)
    folders = ("csrc", "absent", "third/lib/include", "<cuda>/include", "/usr/include")
    missing = [folder for folder in folders if verify.is_missing(folder, found, tmp_path)]
    assert missing == ["absent"]


@pytest.mark.cmake
@needs_tools
def test_a_kernel_for_the_cpu_is_compared_too(tmp_path, capsys):
    text = SIMPLE.replace("CUDAExtension", "CppExtension").replace("scale.cu", "scale.cpp")
    write(tmp_path, text, {"csrc/scale.cpp": "", "csrc/binding.cpp": "PYBIND11_MODULE(x, m) {}"})
    assert run(["port", str(tmp_path), "--no-sandbox"]) == 0
    capsys.readouterr()
    assert run(["port", str(tmp_path), "--no-sandbox", "--verify"]) == 0
    assert capsys.readouterr().out == "no GPU and no toolkit: 2 sources equal, 0 different\n"


def test_a_setup_that_compiles_nothing_without_a_variable_is_told_of_it(tmp_path, capsys):
    guarded = SIMPLE.replace("from setuptools", "import os\nfrom setuptools", 1)
    guarded = guarded.replace("setup(", "wanted = os.getenv('WITH_EXTENSION')\nsetup(", 1)
    guarded = guarded.replace("ext_modules=[", "ext_modules=[] if not wanted else [", 1)
    write(tmp_path, guarded)
    assert run(["port", str(tmp_path), "--no-sandbox", "--env", "WITH_EXTENSION=a b"]) == 0
    assert f"builder port --verify --env 'WITH_EXTENSION=a b' {tmp_path}" in capsys.readouterr().err
    assert run(["port", str(tmp_path), "--no-sandbox", "--verify"]) == 2
    said = capsys.readouterr().err
    assert "setup() is given no extension" in said
    assert "--env NAME=VALUE gives it: WITH_EXTENSION" in said


def test_a_folder_without_a_config_is_told_to_port_first(tmp_path, capsys):
    write(tmp_path, SIMPLE)
    assert run(["port", str(tmp_path), "--verify"]) == 2
    assert "build.toml" in capsys.readouterr().err
    assert not (tmp_path / "build.toml").exists()


def test_what_writes_goes_not_with_comparing(tmp_path, capsys):
    assert run(["port", str(tmp_path), "--verify", "--force"]) == 2
    assert "--verify writes nothing" in capsys.readouterr().err
