"""The grammar of variant names."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.config import Backend, Framework, Version
from builder.matrix.variant import SYSTEMS, Variant, compute_name, python_of


@pytest.mark.parametrize(
    ("name", "framework", "version", "backend", "label"),
    [
        ("torch213-cxx11-cu130-x86_64-linux", "torch", "2.13", "cuda", "torch213.cxx11.cu130"),
        ("torch213-cpu-aarch64-darwin", "torch", "2.13", "cpu", "torch213.cpu"),
        ("torch29-cpu-x86_64-windows", "torch", "2.9", "cpu", "torch29.cpu"),
        ("torch-stable-abi210-cu126-aarch64-linux", "torch", "2.10", "cuda", "torch.stable210.cu126"),
        ("torch-stable-abi210-metal-aarch64-darwin", "torch", "2.10", "metal", "torch.stable210.metal"),
        ("tvm-ffi01-xpu20253-x86_64-linux", "tvm-ffi", "0.1", "xpu", "tvmffi01.xpu20253"),
        ("torch212-cxx11-rocm72-x86_64-linux", "torch", "2.12", "rocm", "torch212.cxx11.rocm72"),
        ("torch213-cxx11-cu130-x86_64-linux-cp312", "torch", "2.13", "cuda", "torch213.cxx11.cu130"),
        ("torch213-cpu-aarch64-darwin-cp310", "torch", "2.13", "cpu", "torch213.cpu"),
        ("torch-cuda", "torch-noarch", None, "cuda", "torch.cuda"),
        ("ctypes-cu130-x86_64-linux", "ctypes", None, "cuda", "ctypes.cu130"),
        ("ctypes-cpu-aarch64-darwin", "ctypes", None, "cpu", "ctypes.cpu"),
        ("torch-npu", "torch-noarch", None, "cann", "torch.npu"),
    ],
)
def test_a_name_is_taken_apart_and_put_together(name, framework, version, backend, label):
    variant = Variant.parse(name)
    assert (variant.framework.value, variant.backend.value, variant.label) == (framework, backend, label)
    assert (None if variant.version is None else str(variant.version)) == version
    assert variant.noarch == (framework == "torch-noarch")
    assert str(variant) == name


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param("torch-cann", id="noarch name of the backend, not of the runtime"),
        pytest.param("torch213-cpu-x86_64-linux", id="linux without cxx11"),
        pytest.param("torch213-cxx11-cpu-aarch64-darwin", id="darwin with cxx11"),
        pytest.param("torch-stable-abi210-cxx11-cpu-x86_64-linux", id="stable abi with cxx11"),
        pytest.param("tvm-ffi01-cxx11-cpu-x86_64-linux", id="tvm-ffi with cxx11"),
        pytest.param("torch213-cxx11-cu130-i686-linux", id="unknown cpu"),
        pytest.param("torch213-cxx11-cuda-x86_64-linux", id="toolkit without version"),
        pytest.param("torch2-cxx11-cpu-x86_64-linux", id="one digit"),
        pytest.param("torch213-cxx11-cpu-x86_64-linux\n", id="newline"),
        pytest.param("torch\uff12\uff11\uff13-cxx11-cpu-x86_64-linux", id="digits that are not ASCII"),
        pytest.param("torch213-cxx11-cpu-x86_64-linux-cp3", id="half a Python"),
        pytest.param("torch213-cxx11-cpu-x86_64-linux-abi3", id="an abi for many Pythons"),
        pytest.param("torch-cuda-cp312", id="noarch for one Python"),
        pytest.param("ctypes01-cpu-x86_64-linux", id="ctypes with a version"),
        pytest.param("ctypes-cpu", id="ctypes without a system"),
        pytest.param("ctypes-cxx11-cpu-x86_64-linux", id="ctypes with cxx11"),
        pytest.param("../torch213-cxx11-cpu-x86_64-linux", id="path"),
        pytest.param("${{ github.token }}", id="expression"),
    ],
)
def test_what_is_not_a_name_is_refused(name):
    with pytest.raises(ValueError, match=r"is not a variant name|belongs to the names"):
        Variant.parse(name)


@st.composite
def variants(draw):
    framework = draw(st.sampled_from(Framework))
    if framework is Framework.TORCH_NOARCH:
        backend = draw(st.sampled_from(Backend))
        return Variant(
            framework=framework, version=None, stable=False, backend=backend, compute=backend.value, system=None
        )
    plain = framework is Framework.CTYPES
    compiled = (Backend.CPU, Backend.CUDA, Backend.METAL, Backend.ROCM, Backend.XPU)
    backend = draw(st.sampled_from([each for each in compiled if each.facts.ctypes or not plain]))
    toolkit = f"{draw(st.integers(1, 2099))}.{draw(st.integers(0, 30))}"
    stable = framework is Framework.TORCH and draw(st.booleans())
    python = None if stable or framework is not Framework.TORCH else draw(st.none() | st.integers(10, 999))
    return Variant(
        framework=framework,
        version=None if plain else Version(f"{draw(st.integers(0, 9))}.{draw(st.integers(0, 99))}"),
        stable=stable,
        backend=backend,
        compute=compute_name(backend, toolkit),
        system=draw(st.sampled_from(SYSTEMS)),
        python=None if python is None else f"cp{python}",
    )


@given(variants())
def test_parsing_undoes_printing(variant):
    assert Variant.parse(str(variant)) == variant


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_is_refused(text):
    with contextlib.suppress(ValueError):
        assert str(Variant.parse(text)) == text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ctypes-cpu-x86_64-linux-cp312", "a plain library serves every Python"),
        ("ctypes-rocm72-x86_64-linux", "rocm has no plain libraries"),
    ],
)
def test_a_plain_library_is_for_every_python_and_for_few_backends(name, why):
    with pytest.raises(ValueError, match=why):
        Variant.parse(name)


@pytest.mark.parametrize("name", ["torch-stable-abi210-cpu-x86_64-linux-cp312", "tvm-ffi01-cpu-x86_64-linux-cp312"])
def test_only_a_library_of_one_torch_is_for_one_python(name):
    with pytest.raises(ValueError, match="a Python belongs to the names of torch"):
        Variant.parse(name)


def test_the_python_of_a_wheel_comes_from_its_tags_and_is_not_in_its_label():
    variant = Variant.of_wheel("torch213.cxx11.cpu", "manylinux_2_28_x86_64", python=python_of("cp312", "cp312"))
    assert (str(variant), variant.label) == ("torch213-cxx11-cpu-x86_64-linux-cp312", "torch213.cxx11.cpu")
    assert [python_of(*tag) for tag in (("py3", "none"), ("cp39", "abi3"), ("cp313", "cp313t"))] == [None, None, None]


def test_a_backend_with_toolkits_needs_one():
    with pytest.raises(ValueError, match="cuda has toolkits"):
        compute_name(Backend.CUDA, None)


def test_the_runtime_looks_for_npu():
    assert Backend.CANN.facts.noarch_variant == "torch-npu"
    assert Backend.NEURON.facts.noarch_variant == "torch-neuron"
