"""Libraries that a config can name, and what is known of them."""

import re

import pytest

from builder.binary import policies
from builder.config import Backend, Framework, libraries
from builder.config.libraries import LibraryName
from tests.config.texts import GENERAL, problems_of

EVERY = libraries.table()


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("cublass", "did you mean 'cublas'?"),
        ("-ldl", "write 'dl'"),
        ("libcublas.so.12", "write 'cublas'"),
        ("CUDA::nvrtc", "write 'nvrtc'"),
        ("roc::hipblas", "write 'hipblas'"),
        ("libdl.a", "write 'dl'"),
    ],
)
def test_an_unknown_library_comes_with_the_one_that_was_meant(text, help_):
    (problem,) = problems_of(GENERAL + f'[torch]\nlibraries = ["m", "{text}"]\n')
    assert (problem.code, problem.key, problem.help) == ("B039", ("torch", "libraries", 1), help_)


@pytest.mark.parametrize("name", EVERY)
def test_every_library_is_either_a_target_or_told_to_the_linker(name):
    facts = EVERY[name]
    assert (facts.target is None) != (facts.link is None)
    assert facts.backends is None or {Backend(each) for each in facts.backends} <= set(Backend)
    assert facts.package is None or facts.target is not None
    assert facts.torch in (None, "loads", "requires")
    assert all(re.fullmatch(r"nvidia-[a-z-]+(-cu12|>=\d+,<\d+)", each) for each in facts.wheels.values())
    assert facts.backends != ("cuda",) or facts.driver or set(facts.wheels) == {"12", "13"}


@pytest.mark.parametrize("name", [name for name, facts in EVERY.items() if facts.torch == "loads"])
def test_what_torch_has_loaded_is_what_the_audit_allows(name):
    facts = EVERY[name]
    assert f"{facts.soname}.*" in policies.loaded("torch", facts.backends[0])


@pytest.mark.parametrize(
    ("names", "framework", "toolkit", "required"),
    [
        (("cublas", "nvrtc", "cuda_driver", "dl"), Framework.TORCH, "13.0", ()),
        (("nvjpeg", "cublas"), Framework.TORCH, "13.0", ("nvidia-nvjpeg>=13,<14",)),
        (("nvjpeg",), Framework.TORCH, "12.6", ("nvidia-nvjpeg-cu12",)),
        (("nvjpeg",), Framework.TORCH, None, ()),
        (
            ("cublas", "cublasLt", "nvrtc"),
            Framework.TVM_FFI,
            "13.0",
            ("nvidia-cublas>=13,<14", "nvidia-cuda-nvrtc>=13,<14"),
        ),
    ],
)
def test_a_wheel_requires_once_each_package_that_torch_does_not_install(names, framework, toolkit, required):
    assert libraries.requirements(map(LibraryName, names), framework, toolkit) == required


def test_what_nobody_has_loaded_is_loaded_by_the_kernel():
    names = [LibraryName(name) for name in ("cublas", "nvrtc", "nvjpeg", "cuda_driver", "dl")]
    assert libraries.to_load(names, Framework.TORCH) == ("libnvrtc.so", "libnvjpeg.so")
    assert libraries.to_load(names, Framework.TVM_FFI) == ("libcublas.so", "libnvrtc.so", "libnvjpeg.so")


def test_the_distribution_of_a_file_is_found_by_its_name():
    assert libraries.distributions("libnvjpeg.so.13") == {"nvidia-nvjpeg", "nvidia-nvjpeg-cu12"}
    assert libraries.distributions("libcublasLt.so.12") == {"nvidia-cublas", "nvidia-cublas-cu12"}
    assert libraries.distributions("libm.so.6") == libraries.distributions("libcuda.so.1") == frozenset()
