"""Machine code that real compilers write twice: what is left out is what NVIDIA's own reader shows to be the same."""

import re
import subprocess

import pytest

from builder.binary import fatbin
from builder.make import repeated_code
from builder.matrix.variant import Variant
from builder.wheel.archive import Bytes, Wheel
from tests.audit import nvidia
from tests.audit.test_devices import gencode
from tests.given.processes import output
from tests.wheels import make, package

CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
ARCHS = ("7.5", "8.0", "8.6", "8.9", "9.0", "9.0a", "10.0", "10.3", "12.0", "12.1+PTX")
PLAIN = """
template <typename T, int N> __global__ void kernel(T *x) {
  __shared__ T tile[N];
  tile[threadIdx.x % N] = x[threadIdx.x];
  __syncthreads();
  for (int i = 0; i < N; ++i) x[threadIdx.x] = x[threadIdx.x] * T(1.5) + T(sinf(tile[i]));
}
extern "C" int run(float *x, double *y) {
  kernel<float, 32><<<1, 32>>>(x);
  kernel<double, 7><<<1, 32>>>(y);
  return cudaGetLastError();
}
"""
ASKS = """
__global__ void asks(int *x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  x[threadIdx.x] *= 3;
#else
  x[threadIdx.x] += 5;
#endif
}
extern "C" int ask(int *x) { asks<<<1, 32>>>(x); return cudaGetLastError(); }
"""
OF_ARCHITECTURE = re.compile(r"\.headerflags|\.target")
MODES = {
    "not compressed": ("--compress-mode=none",),
    "Zstandard": ("--compress-mode=size",),
    "LZ4": ("--compress-mode=speed", "-Xfatbin=-compress-all"),
}


def built(folder, *sources, flags):
    """Return the bytes of a library of some sources for all architectures."""
    tool = nvidia.nvcc()
    objects = []
    for number, text in enumerate(sources):
        source = folder / f"f{number}.cu"
        source.write_text(text)
        objects.append(source.with_suffix(".o"))
        output(tool, "-c", "-Xcompiler", "-fPIC", *gencode(ARCHS), *flags, "-o", objects[-1], source)
    runtime = tool.parent.parent / "lib64"
    output("g++", "-shared", *objects, "-o", folder / "a.so", f"-L{runtime}", "-lcudart")
    return (folder / "a.so").read_bytes()


def trimmed(folder, library):
    """Return a library without what repeats, and the architectures that share the code of others."""
    more = {"_demo.abi3.so": Bytes(library, mode=0o755)}
    path = make(folder, "demo", CUDA, files=package("demo", CUDA, archs=list(ARCHS), more=more))
    wheel, shared = repeated_code.left_out(Wheel.read(path))
    return wheel.members["demo/_demo.abi3.so"].read(), shared


def instructions(readers, library, folder):
    """Return the code of each architecture as NVIDIA's readers show it, without what it says of the architecture."""
    folder.mkdir()
    (folder / "a.so").write_bytes(library)
    output(readers["cuobjdump"], "-xelf", "all", "a.so", cwd=folder)
    found = {}
    for cubin in folder.glob("*.cubin"):
        lines = output(readers["nvdisasm"], "--print-code", cubin).splitlines()
        found[cubin.suffixes[-2].removeprefix(".sm_")] = [line for line in lines if not OF_ARCHITECTURE.search(line)]
    return found


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    return nvidia.readers(tmp_path_factory)


@pytest.mark.cuda
@pytest.mark.network
@pytest.mark.parametrize("flags", MODES.values(), ids=MODES)
def test_what_is_left_out_has_the_instructions_of_what_stays(readers, flags, tmp_path):
    library = built(tmp_path, PLAIN, flags=flags)
    left, shared = trimmed(tmp_path, library)
    assert set(shared) >= {"8.9", "9.0a"}
    before = instructions(readers, library, tmp_path / "before")
    after = instructions(readers, left, tmp_path / "after")
    assert {arch.replace(".", "") for arch in shared} == set(before) - set(after)
    assert all(before[arch] == after[arch] for arch in after)
    assert before["89"] == before["86"]
    assert before["90a"] == before["90"]
    assert before["75"] != before["80"]
    assert all(any("FMUL" in line for line in lines) for lines in before.values())
    stored = dict(fatbin.entries("a.so", library))
    assert all(stored[image] == content for image, content in fatbin.entries("a.so", left))


@pytest.mark.cuda
def test_code_that_asks_for_its_architecture_stays_where_it_differs(tmp_path):
    library = built(tmp_path, PLAIN, ASKS, flags=("--compress-mode=size",))
    left, shared = trimmed(tmp_path, library)
    assert "8.9" not in shared
    assert "9.0a" in shared
    first, second = (
        [image.arch for image, _ in fatbin.entries("a.so", left[start:])]
        for start in (0, left.rindex(b"\x50\xed\x55\xba"))
    )
    assert first.count("8.9") == 1
    assert "8.9" in second


@pytest.mark.cuda
def test_the_library_still_registers_all_of_its_code(tmp_path):
    left, _ = trimmed(tmp_path, built(tmp_path, PLAIN, ASKS, flags=("--compress-mode=size",)))
    (tmp_path / "b.so").write_bytes(left)
    runtime = nvidia.nvcc().parent.parent / "lib64/libcudart.so"
    code = f"import ctypes; ctypes.CDLL({str(runtime)!r}, ctypes.RTLD_GLOBAL); a = ctypes.CDLL('./b.so'); a.run, a.ask"
    subprocess.run(["python3", "-c", code], cwd=tmp_path, check=True)
