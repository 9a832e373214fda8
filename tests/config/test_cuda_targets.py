"""Pairs of capabilities: what is compiled for one becomes code for another."""

import pytest

from builder.config import parse
from builder.config.gpus import CudaTarget, code_of
from builder.config.update import rewrite
from tests.config.dump import dump
from tests.config.texts import GENERAL, five, problems_of, source

CUDA = '[torch]\n[kernel.a]\nbackend = "cuda"\ndepends = []\nsrc = ["a.cu"]\ncuda-capabilities = {}\n'


@pytest.mark.parametrize(
    "text", ["8.0:8.6", "10.0f:10.0", "10.0f:10.3a", "8.0:9.0a", "9.0a:9.0a", "9.0a+PTX", "10.0:10.3f"]
)
def test_a_pair_is_accepted(text):
    assert CudaTarget(text) == text


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("9.0a:9.0", "what is compiled for 9.0a becomes code for 9.0a alone", "write '9.0a'"),
        ("10.0a:10.3a", "what is compiled for 10.0a becomes code for 10.0a alone", "write '10.0a'"),
        ("12.0:10.0", "10.0 is older than 12.0", "the second is what the code runs on: write '10.0:12.0'"),
        ("12.0f:10.0", "10.0 is older than 12.0", "write '12.0f', and '10.0' beside it"),
        ("10.0f:12.0", "12.0 is not of the family of 10.0", "write '10.0f', and '12.0' beside it"),
        ("9.0:10.0f", "10.0 is not of the family of 9.0", "write '9.0:10.0'"),
        ("8.0:8.6+PTX", "is not a CUDA capability", "write '8.0:8.6', and '8.0+PTX' beside it"),
        ("compute_80:sm_86", "is not a CUDA capability", "write '8.0:8.6'"),
        ("arch=compute_100f,code=sm_100", "is not a CUDA capability", "write '10.0f'"),
        ("8.0:8.6:8.9", "is not a CUDA capability", None),
        ("8.0:x", "is not a CUDA capability", None),
        ("sm_90", "is not a CUDA capability", "write '9.0'"),
    ],
)
def test_what_no_nvcc_makes_is_refused_at_its_place(text, message, remedy):
    (problem,) = problems_of(GENERAL + CUDA.format(["8.0", text]))
    assert (problem.code, problem.key, problem.help) == ("B024", ("kernel", "a", "cuda-capabilities", 1), remedy)
    assert message in problem.message


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("8.0:8.6", "8.0:8.6"),
        ("10.0f:10.0", "10.0f"),
        ("10.0f:10.3", "10.0f:10.3f"),
        ("10.0f:10.3a", "10.0f:10.3a"),
        ("9.0a+PTX", "9.0a"),
        ("gfx90a", "gfx90a"),
    ],
)
def test_the_code_of_a_pair_is_named_as_nvcc_marks_it(text, name):
    assert code_of(text).name == name


@pytest.mark.parametrize(
    "found",
    [("8.6", "8.0:8.6"), ("8.0:8.6", "8.6+PTX"), ("7.5:8.6", "8.0:8.6"), ("10.3f", "10.0:10.3"), ("9.0a", "8.0:9.0a")],
)
def test_two_entries_that_make_code_for_one_gpu_are_refused(found):
    (problem,) = problems_of(GENERAL + CUDA.format(list(found)))
    assert (problem.code, problem.key) == ("B067", ("kernel", "a", "cuda-capabilities", 1))
    assert all(repr(name) in problem.message for name in found)


@pytest.mark.parametrize("found", [("10.3a", "10.0f:10.3"), ("10.0f", "10.0f:10.0"), ("8.0", "8.0:8.6", "8.0:9.0")])
def test_entries_that_nvcc_takes_together_are_accepted(found):
    assert five(CUDA.format(list(found))).kernel["a"].cuda_capabilities == found


def test_pairs_are_written_and_kept_by_update():
    text = GENERAL + CUDA.format(["8.0:8.6", "10.0f:10.0"])
    assert parse(source(dump(five(CUDA.format(["8.0:8.6", "10.0f:10.0"]))))) == parse(source(text))
    assert rewrite(source(text)) == text


def test_an_older_schema_has_no_pairs():
    (problem,) = problems_of(GENERAL.replace("edition = 5\n", "") + CUDA.format(["8.0:8.6"]))
    assert (problem.code, problem.message[:33]) == ("B024", "'8.0:8.6' is not a CUDA capabilit")
