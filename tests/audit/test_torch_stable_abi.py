"""Which symbols of torch a wheel of its stable ABI may use, by the version and the backend that it names."""

import pytest

from builder.audit import torch_stable_abi
from builder.config.values import Backend, Framework, Version
from tests.given.audits import library, subject

NEEDED = {Backend.CPU: "cpu", Backend.CUDA: "cuda", Backend.ROCM: "hip", Backend.XPU: "xpu"}


def found(*names, target="2.10", backend=Backend.CPU, headers=(), defined=(), stable=True, framework=Framework.TORCH,
          needed=None, format_="ELF"):  # fmt: skip
    if needed is None:
        needed = (f"/x/libtorch_{NEEDED.get(backend, 'cpu')}.so",)
    one = library(undefined=names, defined=defined, headers=headers, needed=needed, format=format_)
    wheel = subject(one, one, framework=framework, backend=backend, version=target, stable=stable)
    findings = [(finding.symbol, finding.why) for finding in torch_stable_abi.check(wheel)]
    return findings[: len(findings) // 2] if len(findings) > 1 else findings  # the second library is like the first


@pytest.mark.parametrize(
    "other",
    [
        {"stable": False},
        {"framework": Framework.TVM_FFI},
        {"target": None},
    ],
    ids=str,
)
def test_a_wheel_of_another_abi_is_not_judged(other):
    assert found("aoti_torch_of_my_own", "_ZN2at5emptyEv", needed=(), **other) == []


def test_a_target_before_the_first_is_found_and_nothing_else_is_judged():
    ((symbol, why),) = found("aoti_torch_of_my_own", target="2.9")
    assert symbol == "2.9"
    assert "known from 2.10 on" in why


@pytest.mark.parametrize(
    ("symbol", "backend", "since"),
    [
        ("torch_string_length", Backend.CPU, "2.10"),
        ("torch_from_blob", Backend.CPU, "2.11"),
        ("torch_from_blob", Backend.XPU, "2.11"),
        ("torch_set_current_cuda_stream", Backend.CUDA, "2.10"),
        ("aoti_torch_cuda_nonzero_static", Backend.CUDA, "2.11"),
        ("aoti_torch_cuda_nonzero_static", Backend.ROCM, "2.11"),
    ],
)
def test_a_function_of_the_shim_is_right_from_the_torch_on_that_brought_it(symbol, backend, since):
    assert found(symbol, target=since, backend=backend) == []
    assert found(symbol, target="2.15", backend=backend) == []
    older = Version(since).minor - 1
    if older >= 10:
        ((name, why),) = found(symbol, target=f"2.{older}", backend=backend)
        assert name == symbol
        assert why.startswith(f"torch {since} brought this symbol")


@pytest.mark.parametrize(
    ("symbol", "backend", "why"),
    [
        ("aoti_torch_cuda_nonzero_static", Backend.CPU, "which a torch for cpu does not have"),
        ("aoti_torch_cuda_nonzero_static", Backend.XPU, "which a torch for xpu does not have"),
        ("aoti_torch_of_my_own", Backend.CPU, "no release of torch has this symbol"),
        ("torch_of_my_own", Backend.CUDA, "no release of torch has this symbol"),
        ("aoti_of_my_own", Backend.ROCM, "no release of torch has this symbol"),
        ("aoti_torch_xpu_of_my_own", Backend.XPU, "brought the functions of libtorch_xpu"),
        ("THPVariable_Wrap", Backend.METAL, "no release of torch has this symbol"),
    ],
)  # fmt: skip
def test_a_function_that_no_torch_of_the_backend_has_is_found(symbol, backend, why):
    ((name, said),) = found(symbol, backend=backend, target="2.15")
    assert name == symbol
    assert why in said


def test_functions_of_others_are_right_before_and_after_those_of_torch():
    assert found("memcpy", "cudaLaunchKernel", "xtorch_a") == []
    assert [symbol for symbol, _ in found("memcpy", "torch_a", "free", "torch_b")] == ["torch_a", "torch_b"]


@pytest.mark.parametrize(
    ("backend", "format_", "needed", "lacks"),
    [
        (Backend.CPU, "ELF", ("libtorch_cpu.so",), None),
        (Backend.CPU, "ELF", ("libtorch_cuda.so",), "libtorch_cpu.so"),
        (Backend.CUDA, "ELF", ("libtorch_cpu.so",), "libtorch_cuda.so"),
        (Backend.METAL, "Mach-O", ("@rpath/libtorch_cpu.dylib",), None),
        (Backend.CPU, "Mach-O", ("libtorch_cpu.so",), "libtorch_cpu.dylib"),
        (Backend.CANN, "ELF", (), None),
    ],
)
def test_a_library_names_the_one_of_torch_that_has_the_functions(backend, format_, needed, lacks):
    findings = found(backend=backend, format_=format_, needed=needed)
    assert [symbol for symbol, _ in findings] == ([] if lacks is None else [lacks])


@pytest.mark.parametrize(
    ("names", "defined", "symbols"),
    [
        pytest.param(("_ZN2at5emptyEv", "free"), (), ["_ZN2at5emptyEv"], id="needed, of at"),
        pytest.param(("_ZN2at1aENS_1bE", "_ZN2at1cEv"), (), ["_ZN2at1aENS_1bE", "_ZN2at1cEv"], id="each once"),
        pytest.param(("_ZN3c108BFloat16C1Ev",), (), ["_ZN3c108BFloat16C1Ev"], id="needed, though header-only"),
        pytest.param((), ("_ZN3c108BFloat16C1Ev",), [], id="its own copy of what is header-only"),
        pytest.param((), ("_ZN2at5emptyEv",), ["_ZN2at5emptyEv"], id="its own copy of another"),
    ],
)
def test_no_name_of_the_cxx_api_is_used_but_those_in_headers_alone(names, defined, symbols):
    assert [symbol for symbol, _ in found(*names, defined=defined)] == symbols


@pytest.mark.parametrize("symbol", ["aoti_torch_library_impl", "aoti_torch_call_dispatcher"])
def test_what_only_code_for_older_torch_uses_is_found(symbol):
    (finding,) = found(symbol, target="2.15")
    assert finding == (symbol, "only code for torch older than 2.10 uses this; the wheel says 2.15")


@pytest.mark.parametrize(
    ("names", "headers", "target", "asks"),
    [
        (("torch_library_impl",), ("2.13",), "2.13", True),
        (("torch_library_impl",), ("2.12", "2.14"), "2.12", False),
        (("torch_library_impl",), ("2.14",), "2.14", True),
        (("torch_library_impl",), ("2.13",), "2.12", False),
        (("torch_library_impl", "torch_exception_get_what"), ("2.13",), "2.13", False),
        ((), ("2.13",), "2.13", False),
    ],
)
def test_code_that_registers_as_for_an_older_torch_is_found(names, headers, target, asks):
    assert [symbol for symbol, _ in found(*names, headers=headers, target=target)] == (
        ["torch_exception_get_what"] if asks else []
    )


def test_headers_older_than_the_target_are_found_in_order():
    symbols = [symbol for symbol, _ in found(headers=("2.12", "2.10", "2.11", "2.13"), target="2.12")]
    assert symbols == ["TORCH_ABI_VERSION=2.10", "TORCH_ABI_VERSION=2.11"]
