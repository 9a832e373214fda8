"""What the calls of a rendered CMakeLists.txt are given."""

import itertools

import pytest

from builder.config import Backend, Version
from builder.matrix import architectures
from builder.render import arguments

REQUESTED = [None, ("7.0",), ("8.0", "9.0a"), ("10.0",), ("12.0+PTX",), ("5.2", "7.0", "9.0"), ("7.0", "7.5")]


@pytest.mark.parametrize("requested", REQUESTED, ids=str)
def test_every_toolkit_finds_the_line_of_what_it_compiles(requested):
    lines = arguments.capabilities([requested], ())
    for generation in architectures.generations():
        since = (Version(line[0].removeprefix("CUDA>=")) for line in lines)
        line = next(line for line, least in zip(lines, since, strict=True) if least <= generation.since)
        selection = architectures.cuda(requested, generation.since)
        assert line[1:] == (*selection.compiled, *(("lost", *selection.lost) if selection.lost else ()))


@pytest.mark.parametrize("requested", REQUESTED, ids=str)
def test_toolkits_that_compile_the_same_share_a_line(requested):
    compiled = [line[1:] for line in arguments.capabilities([requested], ())]
    assert all(one != other for one, other in itertools.pairwise(compiled))


def test_the_flags_of_a_component_come_after_those_of_its_backend():
    assert arguments.flags_of(Backend.CUDA, ("-O2",))[-2:] == ("-DENABLE_FP8", "-O2")
    assert arguments.flags_of(Backend.XPU, ("-O2",)) == ("-O2",)
