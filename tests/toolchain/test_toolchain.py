import pytest

from builder import toolchain
from builder.config import Backend
from builder.errors import ToolError
from builder.make.workplace import tool_variables
from builder.toolchain.tool import installing
from tests.given.files import program

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
ICPX = """#!/bin/sh
case "$1" in
  --version) echo "Intel(R) oneAPI DPC++/C++ Compiler 2025.3.2 (2025.3.2.20260112)" ;;
  -dumpmachine) echo x86_64-unknown-linux-gnu ;;
  -print-prog-name=sycl-post-link) echo {folder}/compiler/sycl-post-link ;;
  -print-prog-name=*|-print-file-name=*) echo "${{1#*=}}" ;;
esac
"""


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
    assert installing("g++") in caught.value.help


def test_no_cuda_toolkit_is_said_with_what_was_looked_at(tools, tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain.device_compilers, "_SYSTEM_CUDA", tmp_path / "nowhere")
    with pytest.raises(ToolError, match="no CUDA toolkit: looked at CUDA_HOME, CUDA_PATH, nvcc on PATH") as caught:
        find(Backend.CUDA, tools, environ={"CUDA_HOME": str(tmp_path), "PATH": str(tools)})
    assert "CUDA_HOME" in caught.value.help


def test_a_toolkit_of_another_version_is_refused_with_both_versions(tools, tmp_path):
    program(tmp_path / "cuda/bin/nvcc", NVCC.format(version="12.4"))
    with pytest.raises(ToolError, match=r"is 12\.4; this cell needs 13\.0"):
        find(Backend.CUDA, tools, toolkit="13.0", environ={"CUDA_HOME": str(tmp_path / "cuda")})


DEBIANS_NVCC = """#!/bin/sh
case "$1" in
  --version) echo "Cuda compilation tools, release 12.4, V12.4.131" ;;
  --dryrun) echo "#$ _HERE_={folder}/bin" >&2; echo "#$ NVVMIR_LIBRARY_DIR={folder}/libdevice" >&2 ;;
esac
"""


@pytest.mark.parametrize("part", ["bin/nvcc", "bin/cicc", "libdevice/libdevice.10.bc"])
def test_the_toolkit_of_debian_is_usr_and_known_by_what_its_nvcc_runs(tools, tmp_path, monkeypatch, part):
    monkeypatch.setattr(toolchain.device_compilers, "_SYSTEM_CUDA", tmp_path / "nowhere")
    folder = tmp_path / "lib/nvidia-cuda-toolkit"
    for name in ("bin/nvcc", "bin/cicc", "libdevice/libdevice.10.bc"):
        program(folder / name, "one")
    program(tmp_path / "include/cuda_runtime_api.h", "header")
    script = program(tools / "nvcc", DEBIANS_NVCC.format(folder=folder))
    before = find(Backend.CUDA, tools, toolkit="12.4").cuda
    assert before.path == script
    assert before.version == "12.4.131"
    (folder / part).write_text("two")
    assert find(Backend.CUDA, tools, toolkit="12.4").cuda.digest != before.digest


def test_a_script_that_is_in_no_toolkit_is_none(tools, tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain.device_compilers, "_SYSTEM_CUDA", tmp_path / "nowhere")
    program(tools / "nvcc", DEBIANS_NVCC.format(folder=tmp_path))
    with pytest.raises(ToolError, match="no CUDA toolkit"):
        find(Backend.CUDA, tools)


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


def test_hipcc_is_asked_for_its_amd_half_where_nvcc_is_installed(tools, tmp_path):
    said = HIPCC.format(folder=tmp_path / "llvm/bin").removeprefix("#!/bin/sh\n")
    nvidia = '[ "$HIP_PLATFORM" = amd ] || { echo "HIP version: 5.2"; echo "nvcc: NVIDIA (R)"; exit; }'
    program(tmp_path / "rocm/bin/hipcc", f"#!/bin/sh\n{nvidia}\n{said}")
    found = find(Backend.ROCM, tools, environ={"ROCM_PATH": str(tmp_path / "rocm"), "HIP_PLATFORM": "nvidia"})
    assert found.hip.version == "HIP version: 5.2 Debian clang version 15.0.6"
    assert tool_variables(found, cuda_root=None)["HIP_PLATFORM"] == "amd"


def test_the_rocm_is_where_a_link_on_path_leads(tools, tmp_path, monkeypatch):
    monkeypatch.setattr(toolchain.device_compilers, "_SYSTEM_ROCM", tmp_path / "nowhere")
    hipcc = program(tmp_path / "rocm-5.2/bin/hipcc", HIPCC.format(folder=tmp_path))
    (tools / "hipcc").symlink_to(hipcc)
    linked = toolchain.find(Backend.ROCM, environ={"PATH": f"{tools}:/bin:/usr/bin", "CXX": str(tools / "g++")})
    assert linked.hip.path == hipcc
    (tools / "hipcc").unlink()
    (tmp_path / "rocm-5.2/include/hip").mkdir(parents=True)
    hipcc.rename(tmp_path / "rocm-5.2/hipcc")  # a ROCm may link to it itself, from the folder that is its own
    hipcc.symlink_to(tmp_path / "rocm-5.2/hipcc")
    on_path = toolchain.find(Backend.ROCM, environ={"PATH": f"{hipcc.parent}:{tools}:/bin:/usr/bin"})
    assert on_path.hip.path == hipcc
    assert find(Backend.ROCM, tools, environ={"ROCM_HOME": str(tmp_path / "rocm-5.2")}).hip == linked.hip


def test_a_rocm_of_another_release_is_refused_with_both(tools, tmp_path):
    program(tmp_path / "rocm/bin/hipcc", HIPCC.format(folder=tmp_path))
    with pytest.raises(ToolError, match=r"is 5\.2; this cell needs 7\.1"):
        find(Backend.ROCM, tools, toolkit="7.1", environ={"ROCM_PATH": str(tmp_path / "rocm")})


def test_a_hipcc_that_does_not_say_its_version_is_refused(tools, tmp_path):
    program(tmp_path / "rocm/bin/hipcc", "#!/bin/sh\necho clang\n")
    with pytest.raises(ToolError, match="does not say its version"):
        find(Backend.ROCM, tools, toolkit="7.1", environ={"ROCM_PATH": str(tmp_path / "rocm")})


@pytest.fixture
def oneapi(tmp_path, monkeypatch):
    """The folder of a oneAPI 2025.3, whose compiler says where its parts are."""
    root = tmp_path / "oneapi"
    folder = root / "compiler/latest/bin"
    for name in ("icpx", "icx"):
        program(folder / name, ICPX.format(folder=folder))
    program(folder / "compiler/sycl-post-link", "one")
    monkeypatch.setattr(toolchain.device_compilers, "_SYSTEM_ONEAPI", tmp_path / "nowhere")
    return root


@pytest.fixture
def no_cxx(tools):
    return {"PATH": f"{tools}:/usr/bin:/bin"}


def test_xpu_is_compiled_by_the_compilers_of_oneapi(oneapi, no_cxx):
    environ = {**no_cxx, "ONEAPI_ROOT": str(oneapi)}
    found = toolchain.find(Backend.XPU, environ=environ, toolkit="2025.3.2")
    assert (found.cxx.path.name, found.cc.path.name) == ("icpx", "icx")
    assert "2025.3.2" in found.identity["cxx-version"]
    (oneapi / "compiler/latest/bin/compiler/sycl-post-link").write_text("two")
    again = toolchain.find(Backend.XPU, environ=environ, toolkit="2025.3.2")
    assert again.identity["cxx-digest"] != found.identity["cxx-digest"]
    assert again.ocloc is None
    ocloc = program(oneapi / "ocloc/latest/bin/ocloc", "one")
    with_ocloc = toolchain.find(Backend.XPU, environ=environ, toolkit="2025.3.2")
    assert with_ocloc.ocloc == ocloc
    assert with_ocloc.identity["cxx-digest"] != again.identity["cxx-digest"]


def test_the_compiler_of_oneapi_is_found_on_path_and_in_the_usual_place(oneapi, no_cxx, monkeypatch):
    folder = oneapi / "compiler/latest/bin"
    on_path = toolchain.find(Backend.XPU, environ={"PATH": f"{folder}:{no_cxx['PATH']}"})
    monkeypatch.setattr(toolchain.device_compilers, "_SYSTEM_ONEAPI", oneapi)
    assert toolchain.find(Backend.XPU, environ=no_cxx).cxx == on_path.cxx


def test_a_named_compiler_of_oneapi_keeps_its_name(oneapi, no_cxx, tmp_path):
    link = tmp_path / "icpx"
    link.symlink_to(oneapi / "compiler/latest/bin/icx")
    assert toolchain.find(Backend.XPU, environ={**no_cxx, "CXX": str(link)}).cxx.path == link
    with pytest.raises(ToolError, match="CXX names 'nowhere'"):
        toolchain.find(Backend.XPU, environ={**no_cxx, "CXX": "nowhere"})


def test_no_oneapi_is_said_with_what_was_looked_at(no_cxx, monkeypatch, tmp_path):
    monkeypatch.setattr(toolchain.device_compilers, "_SYSTEM_ONEAPI", tmp_path / "nowhere")
    with pytest.raises(ToolError, match="no oneAPI compiler: looked for icpx") as caught:
        toolchain.find(Backend.XPU, environ=no_cxx)
    assert "setvars.sh" in caught.value.help


def test_a_oneapi_of_another_release_is_refused_with_both(oneapi, no_cxx):
    with pytest.raises(ToolError, match=r"is 2025\.3; this cell needs 2026\.0\.0"):
        toolchain.find(Backend.XPU, environ={**no_cxx, "ONEAPI_ROOT": str(oneapi)}, toolkit="2026.0.0")


def test_a_compiler_that_is_not_of_oneapi_is_refused_for_xpu(tools):
    with pytest.raises(ToolError, match="is not the C\\+\\+ compiler of oneAPI") as caught:
        find(Backend.XPU, tools)
    assert "unset CXX" in caught.value.help


def test_the_compiler_of_metal_is_part_of_the_identity(tools, tmp_path):
    metal = program(tmp_path / "xcode/metal", "#!/bin/sh\necho Apple metal version 32023.404\n")
    program(tools / "xcrun", f"#!/bin/sh\necho {metal}\n")
    before = find(Backend.METAL, tools).metal
    assert before.version == "Apple metal version 32023.404"
    program(tmp_path / "xcode/metallib", "one")
    assert find(Backend.METAL, tools).identity["metal-digest"] != before.digest


def test_tools_are_asked_with_the_variables_that_a_build_sees(tools, tmp_path):
    for name in ("one", "two"):
        program(tmp_path / name / "metal", f"#!/bin/sh\necho {name}\n")
    program(tools / "xcrun", "#!/bin/sh\necho $DEVELOPER_DIR/metal\n")
    found = find(Backend.METAL, tools, environ={"DEVELOPER_DIR": str(tmp_path / "two")}).metal
    assert (found.path, found.version) == (tmp_path / "two/metal", "two")


def test_a_mac_without_the_metal_toolchain_is_told_the_command(tools):
    program(tools / "xcrun", "#!/bin/sh\necho xcrun: error: unable to find utility >&2\nexit 72\n")
    with pytest.raises(ToolError, match="no Metal compiler") as caught:
        find(Backend.METAL, tools)
    assert "MetalToolchain" in caught.value.help


def test_a_digest_comes_from_whoever_remembers_it(tools):
    seen = []

    def digest(path):
        seen.append(path.name)
        return "known"

    find(Backend.CPU, tools, digest=digest)
    assert "g++" in seen
