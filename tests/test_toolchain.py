import pytest

from builder import toolchain
from builder.config import Backend
from builder.errors import ToolError

GCC = """#!/bin/sh
case "$1" in
  --version) echo "{name} (Debian 12.2.0) 12.2.0" ;;
  -dumpmachine) echo x86_64-linux-gnu ;;
  -print-prog-name=*) echo "${{1#*=}}" ;;
  -print-file-name=*) echo "${{1#*=}}" ;;
esac
"""
NVCC = '#!/bin/sh\necho "Cuda compilation tools, release {version}, V{version}.88"\n'
HIPCC = '#!/bin/sh\nprintf "HIP version: 5.2\\nDebian clang version 15.0.6\\nInstalledDir: {folder}\\n"\n'


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def tools(tmp_path):
    """A folder with a compiler; what runs it is the shell."""
    for name in ("g++", "gcc"):
        program(tmp_path / "bin" / name, GCC.format(name=name))
    return tmp_path / "bin"


def find(backend, tools, **options):
    environ = {"PATH": f"{tools}:/usr/bin:/bin", "CXX": str(tools / "g++"), **options.pop("environ", {})}
    return toolchain.find(backend, environ=environ, **options)


def test_the_compiler_is_told_by_its_content_and_not_by_its_place(tools, tmp_path):
    moved = tmp_path / "elsewhere"
    before = find(Backend.CPU, tools).identity
    tools.rename(moved)
    assert find(Backend.CPU, moved).identity == before
    (moved / "g++").write_text((moved / "g++").read_text() + "# another\n")
    assert find(Backend.CPU, moved).identity != before


def test_the_c_compiler_is_the_one_beside_the_cxx_compiler(tools):
    assert find(Backend.CPU, tools).cc.path == tools / "gcc"


def test_a_compiler_that_is_named_and_absent_is_said(tools):
    with pytest.raises(ToolError, match="CXX names 'nowhere'"):
        find(Backend.CPU, tools, environ={"CXX": "nowhere"})


def test_no_compiler_is_said_with_how_to_get_one(tmp_path):
    with pytest.raises(ToolError, match=r"no C\+\+ compiler") as caught:
        toolchain.find(Backend.CPU, environ={"PATH": str(tmp_path)})
    assert "apt-get install g++" in caught.value.help


def test_no_cuda_toolkit_is_said_with_what_was_looked_at(tools, tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain, "_SYSTEM_CUDA", tmp_path / "nowhere")
    with pytest.raises(ToolError, match="no CUDA toolkit: looked at CUDA_HOME, CUDA_PATH, nvcc on PATH") as caught:
        find(Backend.CUDA, tools, environ={"CUDA_HOME": str(tmp_path), "PATH": str(tools)})
    assert "CUDA_HOME" in caught.value.help


def test_a_toolkit_of_another_version_is_refused_with_both_versions(tools, tmp_path):
    program(tmp_path / "cuda/bin/nvcc", NVCC.format(version="12.4"))
    with pytest.raises(ToolError, match=r"is 12\.4; this cell needs 13\.0"):
        find(Backend.CUDA, tools, toolkit="13.0", environ={"CUDA_HOME": str(tmp_path / "cuda")})


def test_a_toolkit_of_pinned_wheels_comes_before_the_machines(tools, tmp_path):
    program(tmp_path / "cuda/bin/nvcc", NVCC.format(version="12.4"))
    pinned = program(tmp_path / "pinned/bin/nvcc", NVCC.format(version="13.0"))
    environ = {"CUDA_HOME": str(tmp_path / "cuda")}
    found = find(Backend.CUDA, tools, toolkit="13.0", toolkit_root=tmp_path / "pinned", environ=environ)
    assert found.cuda.path == pinned


def test_the_device_libraries_of_rocm_are_part_of_its_identity(tools, tmp_path):
    rocm = tmp_path / "rocm"
    program(rocm / "bin/hipcc", HIPCC.format(folder=rocm / "llvm/bin"))
    program(rocm / "llvm/bin/clang-15", "clang")
    bitcode = program(rocm / "amdgcn/bitcode/ocml.bc", "one")
    environ = {"ROCM_PATH": str(rocm)}
    before = find(Backend.ROCM, tools, environ=environ).hip
    assert before.version == "HIP version: 5.2 Debian clang version 15.0.6"
    bitcode.write_text("two")
    assert find(Backend.ROCM, tools, environ=environ).hip.digest != before.digest


def test_a_digest_comes_from_whoever_remembers_it(tools):
    seen = []

    def digest(path):
        seen.append(path.name)
        return "known"

    find(Backend.CPU, tools, digest=digest)
    assert "g++" in seen
