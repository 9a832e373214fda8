"""The tables about torch against an installed torch, and real kernels of both ABIs."""

import re
import subprocess
from pathlib import Path

import pytest

from builder.audit.mangled import torch_names
from builder.audit.torch_stable_abi import header_only, shim
from builder.binary.extension import Extension
from builder.config.values import Version
from tests.given.audits import findings

pytestmark = pytest.mark.torch

OPS = "_demo_cpu_0000001"
HEADER = r"""
extern "C" void *PyModule_Create2(void *, int);
#define DEMO_MODULE extern "C" __attribute__((visibility("default"))) void *PyInit_OPS(void) { \
  static long module[13]; \
  return PyModule_Create2(module, 3); }
""".replace("OPS", OPS)
STABLE = r"""
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/complex.h>
#include <vector>
using torch::stable::Tensor;
std::vector<c10::BFloat16> halves(3);
template <typename T> void twice(std::vector<T> &values) { for (T &value : values) value = value + value; }
Tensor f(Tensor x) { twice(halves); return torch::stable::empty_like(x); }
STABLE_TORCH_LIBRARY(OPS, m) { m.def("f(Tensor x) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(OPS, CPU, m) { m.impl("f", TORCH_BOX(&f)); }
DEMO_MODULE
""".replace("OPS", OPS)
CLASSIC = r"""
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>
at::Tensor f(const at::Tensor &x) { TORCH_CHECK(x.is_cpu(), "not on the CPU"); return at::empty_like(x); }
TORCH_LIBRARY(OPS, m) { m.def("f(Tensor x) -> Tensor"); m.impl("f", torch::dispatch(c10::DispatchKey::CPU, &f)); }
DEMO_MODULE
""".replace("OPS", OPS)
SINGLE_THREADED = 'extern "C" { __attribute__((visibility("hidden"))) char __libc_single_threaded = 0; }\n'


@pytest.fixture(scope="module")
def torch_root():
    return Path(pytest.importorskip("torch").__file__).parent


@pytest.fixture(scope="module")
def libtorch(torch_root):
    path = torch_root / "lib" / "libtorch_cpu.so"
    return Extension.read(path.name, path.read_bytes())


@pytest.fixture(scope="module")
def compile_(torch_root, tmp_path_factory):
    made = {}

    def make(source, *flags):
        if (source, flags) not in made:
            place = tmp_path_factory.mktemp("kernel")
            (place / "kernel.cpp").write_text(HEADER + source + SINGLE_THREADED)
            include = [torch_root / "include", torch_root / "include/torch/csrc/api/include"]
            command = [
                "g++", "-std=c++20", "-O1", "-shared", "-fPIC", "-fno-gnu-unique",
                *(f"-I{path}" for path in include), *flags,
                str(place / "kernel.cpp"), "-o", str(place / "kernel.so"), f"-L{torch_root / 'lib'}",
                "-Wl,--no-as-needed", "-ltorch_cpu", "-lc10", "-Wl,--as-needed",
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            made[source, flags] = (place / "kernel.so").read_bytes()
        return made[source, flags]

    return make


def test_the_installed_torch_has_the_shim_symbols_of_its_version(libtorch):
    torch = pytest.importorskip("torch")
    version = Version(".".join(torch.__version__.split(".")[:2]))
    defined = {symbol.name for symbol in libtorch.defined}
    table = {name: Version(since.removeprefix("<=")) for name, since in shim()["libtorch_cpu"].items()}
    assert {name for name, since in table.items() if since <= version} <= defined
    assert not {name for name, since in table.items() if since > version} & defined


def test_the_installed_torch_has_no_shim_symbol_that_the_table_lacks(libtorch):
    defined = {symbol.name for symbol in libtorch.defined if symbol.name.startswith(("aoti_torch_", "torch_"))}
    assert defined <= shim()["libtorch_cpu"].keys()


def test_names_of_the_header_only_list_are_in_the_headers(torch_root):
    headers = [*(torch_root / "include/torch/headeronly").rglob("*.h")]
    text = "\n".join(path.read_text() for path in headers)
    for name in header_only()["c10"]:
        assert re.search(rf"\b{re.escape(name)}\b", text), f"c10::{name}"


def test_the_library_of_torch_itself_defines_much_that_is_not_header_only(libtorch):
    """Would the rule see a library that uses torch's C++ API? It sees torch."""
    names = {name for symbol in libtorch.defined[:20000] for name in torch_names(symbol.name)}
    assert {name.namespace for name in names} >= {"at", "c10", "torch"}


@pytest.mark.parametrize(
    ("target", "label", "found"),
    [
        pytest.param("2.10", "2.10", set(), id="2.10"),
        pytest.param("2.11", "2.11", set(), id="2.11", marks=pytest.mark.slow),
        pytest.param("2.13", "2.13", set(), id="2.13", marks=pytest.mark.slow),
        pytest.param("2.9", "2.10", {"aoti_torch_library_impl"}, id="less than its name", marks=pytest.mark.slow),
        pytest.param(
            "2.12", "2.13", {"torch_exception_get_what"}, id="less than its name, by a little", marks=pytest.mark.slow
        ),
        pytest.param(
            "2.13",
            "2.10",
            {"torch_exception_get_what", "torch_exception_get_what_without_backtrace"},
            id="more than its name",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_stable_kernel(compile_, make_wheel, target, label, found):
    major, minor = target.split(".")
    library = compile_(STABLE, f"-DTORCH_TARGET_VERSION=0x{int(major):02x}{int(minor):02x}000000000000")
    path = make_wheel(library=library, label=f"torch.stable{label.replace('.', '')}.cpu", requires=f"torch>={label}")
    symbols = {symbol for rule, symbol in findings(path) if rule == "torch-stable-abi"}
    assert symbols >= found
    assert bool(symbols) == bool(found)


@pytest.mark.slow
def test_a_classic_kernel(compile_, make_wheel):
    library = compile_(CLASSIC)
    assert not findings(make_wheel(library=library, label="torch213.cxx11.cpu", requires="torch==2.13.*"))
    wrong = findings(make_wheel(library=library, label="torch.stable210.cpu", requires="torch>=2.10"))
    assert {rule for rule, _ in wrong} == {"torch-stable-abi"}
    assert len(wrong) > 20
