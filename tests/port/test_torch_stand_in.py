"""What a setup.py may ask of torch is answered, and said where nothing is known of it."""

import pytest

from tests.port.projects import CUDA, PLAIN, ported, recorded

END = """
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension
macros = [("SAID", str(said))]
setup(name="x", ext_modules=[CUDAExtension("x", ["csrc/binding.cpp", "csrc/scale.cu"], define_macros=macros)])
"""


def said(folder, text, setting=CUDA):
    (run,) = recorded(folder, f"{text}\n{END}", setting).runs
    assert run.failure is None
    return run.extensions[0].define_macros[0][1], run.answered


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("from torch.__config__ import parallel_info\nsaid = 'backend: OpenMP' in parallel_info()", "True"),
        ("import torch\nsaid = 'OpenMP' in torch._C._parallel_info()", "True"),
        ("import torch\nsaid = torch.backends.cuda.is_built()", "True"),
        ("import torch\nsaid = torch.backends.cudnn.version() >= 80000", "True"),
        ("import torch\nsaid = 'sm_90' in torch.cuda.get_arch_list()", "True"),
        ("import torch\nsaid = hasattr(torch, 'npu') or hasattr(torch.version, 'musa')", "False"),
        ("try:\n    import torch.npu\nexcept ImportError:\n    said = False", "False"),
    ],
    ids=["parallel info", "of _C", "backends", "cuDNN", "architectures", "of others", "an import of others"],
)
def test_torch_answers_as_one_with_cuda_does(tmp_path, text, answer):
    assert said(tmp_path, text) == (answer, {})


def test_torch_answers_as_one_without_cuda_does(tmp_path):
    text = "from torch import backends as b, cuda\nsaid = b.cuda.is_built(), b.cudnn.version(), cuda.get_arch_list()"
    assert said(tmp_path, text, PLAIN)[0] == "(False, None, [])"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\nsaid = torch.cuda.nccl.version() >= (2, 7)", "torch.cuda.nccl"),
        ("from torch.distributed.elastic import rendezvous as said", "torch.distributed.elastic.rendezvous"),
        ("from torch._inductor.utils import fresh as said", "torch._inductor.utils.fresh"),
        ("import torch\nsaid = torch.ones(3).sum() + 1", "torch.ones"),
        ("import torch\nsaid = int(torch.get_autocast_gpu_dtype().itemsize)", "torch.get_autocast_gpu_dtype"),
        ("from torch.utils.cpp_extension import _nt_quote_args as said", "torch.utils.cpp_extension._nt_quote_args"),
    ],
    ids=["a version", "a module", "a private module", "a tensor", "a number", "a private function"],
)
def test_what_is_not_known_of_torch_is_answered_and_noted(tmp_path, text, name):
    answered = said(tmp_path, text)[1]
    assert list(answered) == [name]
    assert answered[name].startswith("setup.py:")


def test_a_person_is_told_what_was_answered_without_knowing_it(tmp_path):
    remaining = ported(tmp_path, f"import torch\nsaid = torch.cuda.nccl.version() >= (2, 7)\n{END}").remaining
    assert "a stand-in answered what setup.py asks of torch: torch.cuda.nccl (setup.py:2)" in remaining
