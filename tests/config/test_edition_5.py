"""The keys of edition 5, and the remedy for each mistake in them."""

import pytest

from builder.config import Backend, Version, v5
from builder.config.text import dotted
from tests.config.texts import GENERAL, five, problems_of


def test_a_plain_stable_abi_is_for_every_backend():
    config = five('[torch]\nstable-abi = "2.10"\n')
    assert config.stable_abi(Backend.CUDA) == config.stable_abi(Backend.CPU) == Version("2.10")


def test_a_table_of_stable_abis_is_for_the_backends_it_names():
    config = five('[torch.stable-abi]\ncuda = "2.10"\n')
    assert config.stable_abi(Backend.CUDA) == Version("2.10")
    assert config.stable_abi(Backend.CPU) is None


@pytest.mark.parametrize("key", ["cuda_capabilities", "cuda-capabilities"])
def test_both_spellings_of_noarch_keys_are_read(key):
    assert five(f'[torch-noarch]\n{key} = ["9.0"]\n').torch_noarch.cuda_capabilities == ("9.0",)


def test_two_spellings_of_one_key_are_refused():
    (problem,) = problems_of(GENERAL + "[torch-noarch]\nrocm_archs = []\nrocm-archs = []\n")
    assert problem.message == "'rocm-archs' and 'rocm_archs' are the same key"


def test_the_matrix_is_read():
    config = five('[torch]\n[matrix]\nsystems = ["x86_64-linux"]\n[matrix.cuda]\ntoolkits = ["13.0"]\nptxas = "12.8"\n')
    assert config.matrix == v5.Matrix(
        systems=("x86_64-linux",), backend={Backend.CUDA: v5.MatrixBackend(toolkits=("13.0",), ptxas="12.8")}
    )


def test_components_keep_the_order_of_the_file():
    component = 'backend = "cpu"\nsrc = []\ndepends = []\n'
    config = five(f"[torch]\n[kernel.z]\n{component}[kernel.a]\n{component}")
    assert list(config.components(Backend.CPU)) == ["z", "a"]


def test_python_depends_are_the_general_ones_and_those_of_the_backend():
    config = five('python-depends = ["einops"]\n[general.cuda]\npython-depends = ["nvidia-cutlass-dsl"]\n[torch]\n')
    assert config.python_depends(Backend.CUDA) == ("einops", "nvidia-cutlass-dsl")
    assert config.python_depends(Backend.CPU) == ("einops",)


@pytest.mark.parametrize(
    ("text", "key", "help_"),
    [
        pytest.param('[torch]\nmin-ver = "2.9"\n', "torch.min-ver", "did you mean 'minver'?", id="a near key"),
        pytest.param("[torch]\nminver = 2.10\n", "torch.minver", 'quote it: "2.10"', id="a float"),
        pytest.param('[torch]\nminver = "2"\n', "torch.minver", "write '2.0'", id="one number"),
        pytest.param('[torch]\nminver = "2.9.1"\n', "torch.minver", "write '2.9'", id="three numbers"),
        pytest.param('[torch]\nsrc = "a.cpp"\n', "torch.src", 'write ["a.cpp"]', id="no array"),
        pytest.param(
            '[torch]\nstable-abi = { cdua = "2.9" }\n', "torch.stable-abi.cdua", "did you mean 'cuda'?", id="key"
        ),
        pytest.param(
            '[torch-noarch]\ncuda_capabilities = ["sm_90a"]\n',
            "torch-noarch.cuda_capabilities[0]",
            "write '9.0a'",
            id="nvcc's spelling",
        ),
        pytest.param(
            '[torch-noarch]\ncuda_capabilities = ["120"]\n',
            "torch-noarch.cuda_capabilities[0]",
            "write '12.0'",
            id="a number",
        ),
        pytest.param(
            '[torch-noarch]\nrocm_archs = ["90A"]\n', "torch-noarch.rocm_archs[0]", "write 'gfx90a'", id="arch"
        ),
        pytest.param(
            '[torch]\n[general.cuda]\npython-depends = ["einops"]\n',
            "general.cuda.python-depends[0]",
            "move it to 'general.python-depends'",
            id="a dependency of another table",
        ),
        pytest.param(
            '[torch]\n[general.hub]\nrepo = "a/b"\n', "general.hub.repo", "did you mean 'repo-id'?", id="a short key"
        ),
    ],
)
def test_a_mistake_comes_with_its_remedy(text, key, help_):
    (problem,) = problems_of(GENERAL + text)
    assert (dotted(problem.key), problem.help) == (key, help_)


def test_a_misspelled_required_key_is_one_problem():
    (problem,) = problems_of(GENERAL.replace("license", "licence") + "[torch]\n")
    assert problem.help == "did you mean 'license'?"


def test_a_misspelled_framework_is_one_problem():
    (problem,) = problems_of(GENERAL + "[torch_noarch]\n")
    assert problem.help == "did you mean 'torch-noarch'?"


def test_a_key_of_another_backend_names_that_backend():
    (problem,) = problems_of(
        GENERAL + '[torch]\n[kernel.a]\nbackend = "rocm"\nsrc = []\ndepends = []\ncuda-flags = []\n'
    )
    assert problem.message == "key 'cuda-flags' is for backend 'cuda', and the backend here is 'rocm'"


@pytest.mark.parametrize(
    "value",
    ["1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "nan", "true", "[]", "{}", "1", "1.5"],
)
def test_no_scalar_passes_for_a_string(value):
    (problem,) = problems_of(GENERAL.replace('"MIT"', value) + "[torch]\n")
    assert problem.message.startswith("'license' must be a string, found a")
