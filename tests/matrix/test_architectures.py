"""What is compiled of what is asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.config import Version
from builder.matrix import architectures

CUDA_13 = "7.5 8.0 8.6 8.7 8.9 9.0 10.0 11.0 12.0 12.1+PTX"


@pytest.mark.parametrize(
    ("requested", "supported", "compiled", "lost"),
    [
        pytest.param(
            "7.5 8.0 8.6 9.0 9.0a", "8.0 8.9 9.0", "8.0 8.6 9.0a", "7.5 9.0", id="the suffix replaces the plain one"
        ),
        pytest.param("8.0+PTX", "9.0", "8.0+PTX", "", id="PTX runs on a later major version"),
        pytest.param("9.0a 10.0a", "7.0 8.0 9.0", "9.0a", "10.0a", id="an unsupported suffix is lost"),
        pytest.param("8.0 9.0a 9.0", "8.0 9.0 10.0", "8.0 9.0a", "9.0", id="the suffix wins over the plain one"),
        pytest.param("10.0f 12.0f", "9.0 10.0 10.1 12.0 12.1", "10.0f 12.0f", "", id="families"),
        pytest.param("9.0a 10.0a 12.0+PTX", "7.5 9.0 10.0 12.0 12.1", "9.0a 10.0a 12.0+PTX", "", id="PTX last"),
        pytest.param("8.0+PTX 9.0a+PTX", "7.5 8.0 9.0 10.0", "8.0+PTX 9.0a+PTX", "", id="PTX of a suffix"),
        pytest.param("8.0 8.9", CUDA_13, "8.0 8.9", "", id="the CUDA 13 list"),
        pytest.param("8.0", "9.0", "", "8.0", id="nothing: another major version"),
        pytest.param("10.3a", "9.0 10.0 12.0", "", "10.3a", id="nothing: no such GPU"),
        pytest.param("8.0 8.0 8.0", "8.0", "8.0", "", id="repeated"),
        pytest.param("10.0 9.0 8.0", "8.0 9.0 10.0", "8.0 9.0 10.0", "", id="natural order, not that of text"),
        pytest.param("8.0", "8.0+PTX", "8.0", "", id="the PTX of the supported list is not asked for"),
        pytest.param("8.6", "8.0 8.9", "8.6", "", id="a GPU between two supported ones"),
        pytest.param("9.0", "8.9", "", "9.0", id="nothing: newer than what is supported"),
        pytest.param("", "8.0", "", "", id="nothing asked for"),
    ],
)
def test_loose_intersection(requested, supported, compiled, lost):
    selection = architectures.intersect(tuple(requested.split()), tuple(supported.split()))
    assert (" ".join(selection.compiled), " ".join(selection.lost)) == (compiled, lost)


CAPABILITIES = st.lists(
    st.sampled_from(
        [f"{n}.{m}{s}{p}" for n in (7, 8, 9, 10, 12) for m in (0, 5, 9) for s in ("", "a", "f") for p in ("", "+PTX")]
    ),
    unique=True,
)


@given(CAPABILITIES, st.sampled_from(architectures.generations()))
def test_every_requested_capability_is_compiled_or_reported_lost(requested, generation):
    selection = architectures.intersect(tuple(requested), generation.capabilities)
    names = {name.removesuffix("+PTX") for name in selection.compiled}
    assert {name for name in requested if name.removesuffix("+PTX") not in names} == set(selection.lost)
    assert names <= {name.removesuffix("+PTX") for name in requested}


@given(CAPABILITIES, st.sampled_from(architectures.generations()))
def test_the_order_of_the_request_has_no_meaning(requested, generation):
    forward = architectures.intersect(tuple(requested), generation.capabilities)
    assert architectures.intersect(tuple(reversed(requested)), generation.capabilities) == forward


@pytest.mark.parametrize(
    ("toolkit", "first", "last"),
    [
        pytest.param("13.2", "7.5", "12.1+PTX", id="newer than the newest row"),
        pytest.param("13.0", "7.5", "12.1+PTX", id="the newest row"),
        pytest.param("12.9", "7.0", "12.0+PTX", id="12.8 and later"),
        pytest.param("12.8", "7.0", "12.0+PTX", id="12.8"),
        pytest.param("12.6", "7.0", "9.0+PTX", id="older"),
    ],
)
def test_without_a_request_a_toolkit_compiles_all_it_supports(toolkit, first, last):
    compiled = architectures.cuda(None, Version(toolkit)).compiled
    assert (compiled[0], compiled[-1]) == (first, last)


def test_a_toolkit_before_all_rows_compiles_nothing():
    assert architectures.cuda(("8.0",), Version("10.2")).lost == ("8.0",)


def test_rocm_takes_the_plain_intersection_in_natural_order():
    selection = architectures.rocm(("gfx1100", "gfx90a", "gfx9999"))
    assert selection == architectures.Architectures(compiled=("gfx90a", "gfx1100"), lost=("gfx9999",))


def test_rocm_without_a_request_compiles_all():
    assert set(architectures.rocm(None).compiled) == set(architectures.facts()["rocm"]["archs"])
