"""Device code that real compilers made, against what the audit and NVIDIA's own reader see."""

import re

import pytest

from builder import audit
from builder.audit import gpus
from builder.audit.gpus import named
from builder.binary import device_code
from builder.binary.device_image import Image
from builder.binary.extension import Extension
from builder.wheel.archive import Wheel
from tests.audit import nvidia
from tests.audit.nvidia import nvcc, without_family
from tests.given.processes import output

KERNEL = """
__global__ void twice(float *x) { x[threadIdx.x] *= 2.f; }
extern "C" void run(float *x) { twice<<<1, 32>>>(x); }
"""
HIP_KERNEL = """
#include <hip/hip_runtime.h>
__global__ void twice(float *x) { x[threadIdx.x] *= 2.f; }
void run(float *x) { twice<<<1, 32>>>(x); }
"""
MODULE = r"""
extern "C" {
void *PyModule_Create2(void *, int);
void *PyInit_OPS(void) { return PyModule_Create2(nullptr, 3); }
}
"""
OPS = "_demo_cuda_0000001"
LISTS = {
    "one": ("8.0",),
    "several": ("7.5", "8.0", "8.6"),
    "specific": ("9.0a", "10.0f", "10.3a"),
    "PTX": ("8.0", "12.0+PTX"),
    "specific PTX": ("9.0a+PTX",),
}


def gencode(archs):
    for arch in archs:
        number = arch.removesuffix("+PTX").replace(".", "")
        codes = f"sm_{number},compute_{number}" if arch.endswith("+PTX") else f"sm_{number}"
        yield f"-gencode=arch=compute_{number},code=[{codes}]"


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Compile and link the kernel once for each set of arguments; the path of the library."""
    made = {}

    def make(archs, *, flags=(), link_flags=None):
        key = (archs, flags, link_flags)
        if key not in made:
            made[key] = compile_and_link(tmp_path_factory.mktemp("kernel"), archs, flags, link_flags)
        return made[key]

    return make


def compile_and_link(directory, archs, flags, link_flags):
    source, objects, library = directory / "kernel.cu", directory / "kernel.o", directory / "kernel.so"
    source.write_text(KERNEL + MODULE.replace("OPS", OPS))
    tool = nvcc()
    output(tool, "-c", "-Xcompiler", "-fPIC,-fno-gnu-unique", *gencode(archs), *flags, "-o", objects, source)
    if link_flags is None:
        output("g++", "-shared", objects, "-o", library, f"-L{tool.parent.parent / 'lib64'}", "-lcudart")
    else:
        output(tool, "-shared", "-cudart", "shared", objects, "-o", library, *link_flags)
    return library


@pytest.fixture(scope="module")
def cuobjdump(tmp_path_factory):
    """NVIDIA's own reader, from the toolkit or from its wheel."""
    return nvidia.tool("cuobjdump", "nvidia-cuda-cuobjdump", tmp_path_factory.mktemp("cuobjdump"))


def by_cuobjdump(tool, library):
    text = "".join(output(tool, option, library) for option in ("--list-elf", "--list-ptx"))
    found = set()
    for kind, name, suffix in re.findall(r"(ELF|PTX) file +\d+: \S+?\.\d+\.sm_(\d+)([af]?)\.", text):
        arch = f"{int(name) // 10}.{int(name) % 10}{suffix}"
        found.add(Image(kind="sass" if kind == "ELF" else "ptx", arch=arch))
    return found


@pytest.mark.cuda
@pytest.mark.parametrize("archs", LISTS.values(), ids=LISTS)
def test_the_library_has_what_nvcc_was_told(build, archs):
    assert device_code.read("a.so", build(archs).read_bytes()) == device_code.images_of(archs)


@pytest.mark.cuda
def test_ptx_needs_a_driver_of_the_release_of_nvcc(build):
    (group,) = device_code.groups("a.so", build(LISTS["PTX"]).read_bytes())
    found = gpus.choose(named("12.1"), [frozenset(image for image in group if image.kind == "ptx")])
    assert found.cuda == re.search(r"release ([0-9.]+)", output(nvcc(), "--version"))[1]


@pytest.mark.cuda
@pytest.mark.network
@pytest.mark.parametrize("archs", LISTS.values(), ids=LISTS)
def test_it_reads_what_cuobjdump_reads(build, cuobjdump, archs):
    library = build(archs)
    assert without_family(device_code.read("a.so", library.read_bytes())) == by_cuobjdump(cuobjdump, library)


@pytest.mark.cuda
@pytest.mark.parametrize("flags", [("-Xfatbin=-compress-all",), ("--compress-mode=size",)], ids=["all", "size"])
def test_compressed_images_are_read(build, flags):
    archs = ("8.0", "12.0+PTX")
    assert device_code.read("a.so", build(archs, flags=flags).read_bytes()) == device_code.images_of(archs)


@pytest.mark.cuda
def test_the_empty_code_that_nvcc_adds_when_it_links_does_not_count(build):
    content = build(("9.0a",), link_flags=()).read_bytes()
    assert device_code.read("a.so", content) == device_code.images_of(("9.0a",))


@pytest.mark.cuda
@pytest.mark.parametrize("flags", [("--compress-mode=size",), ("-Xfatbin=-compress-all",)], ids=["size", "all"])
def test_nor_does_it_where_the_link_compresses_it(build, flags):
    content = build(("9.0a",), flags=flags, link_flags=flags).read_bytes()
    assert device_code.read("a.so", content) == device_code.images_of(("9.0a",))


@pytest.mark.cuda
def test_linker_input_does_not_count(build):
    linked = build(("8.0", "12.0+PTX"), flags=("-rdc=true",), link_flags=tuple(gencode(("8.0", "12.0"))))
    content = linked.read_bytes()
    extension = Extension.read("a.so", content)
    assert extension.relocatable_device_code
    found = device_code.read("a.so", content, without=extension.relocatable_device_code)
    assert found == device_code.images_of(("8.0", "12.0"))


@pytest.mark.cuda
@pytest.mark.parametrize(
    "case",
    [
        pytest.param((["8.0", "12.0+PTX"], set()), id="the same"),
        pytest.param((["8.0", "12.0"], {"12.0"}), id="PTX that nobody promised"),
        pytest.param((["8.0"], {"12.0"}), id="an architecture too many"),
        pytest.param((["8.0", "9.0a", "12.0+PTX"], {"9.0a"}), id="an architecture too few"),
        pytest.param((["8.0+PTX", "12.0+PTX"], {"8.0"}), id="PTX too few"),
        pytest.param(([], {"8.0", "12.0"}), id="none promised"),
        pytest.param((None, {"backend.archs"}), id="nothing said"),
    ],
)
@pytest.mark.parametrize("strip", [False, True], ids=["whole", "stripped"])
def test_only_archs_finds(build, tmp_path, make_wheel, case, strip):
    promised, symbols = case
    library = build(("8.0", "12.0+PTX"))
    if strip:
        output("strip", "--strip-all", "-o", tmp_path / "stripped.so", library)
        library = tmp_path / "stripped.so"
    classic = {"label": "torch213.cxx11.cu130", "requires": "torch==2.13.*", "backend": "cuda", "ops": OPS}
    report = audit.run(Wheel.read(make_wheel(library=library.read_bytes(), archs=promised, **classic)))
    assert {(finding.rule, finding.symbol) for finding in report.findings} == {("archs", symbol) for symbol in symbols}


@pytest.mark.cuda
def test_the_plan_is_believed_before_metadata(build, make_wheel):
    classic = {"label": "torch213.cxx11.cu130", "requires": "torch==2.13.*", "backend": "cuda", "ops": OPS}
    path = make_wheel(library=build(("8.0",)).read_bytes(), archs=["8.0"], **classic)
    assert audit.run(Wheel.read(path), plan=audit.AuditPromise(archs=("8.0",))).ok
    report = audit.run(Wheel.read(path), plan=audit.AuditPromise(archs=("8.0", "9.0")))
    assert {finding.symbol for finding in report.findings} == {"9.0", "backend.archs"}


@pytest.mark.cuda
def test_device_code_in_a_cpu_wheel_is_found(build, make_wheel):
    content = build(("8.0",)).read_bytes()
    classic = {"label": "torch213.cxx11.cpu", "requires": "torch==2.13.*", "ops": OPS}
    report = audit.run(Wheel.read(make_wheel(library=content, **classic)))
    assert ("archs", "8.0") in {(finding.rule, finding.symbol) for finding in report.findings}


@pytest.mark.rocm
@pytest.mark.parametrize("archs", [("gfx90a",), ("gfx908", "gfx90a", "gfx1030")], ids=["one", "three"])
def test_the_library_has_what_hipcc_was_told(tmp_path, monkeypatch, archs):
    monkeypatch.setenv("HIP_PLATFORM", "amd")  # where nvcc is installed, hipcc would hand all to that
    (tmp_path / "kernel.hip").write_text(HIP_KERNEL)
    flags = [f"--offload-arch={arch}" for arch in archs]
    output("hipcc", "-shared", "-fPIC", *flags, tmp_path / "kernel.hip", "-o", tmp_path / "a.so")
    assert device_code.read("a.so", (tmp_path / "a.so").read_bytes()) == device_code.images_of(archs)
