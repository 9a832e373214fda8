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
        pytest.param("8.0+PTX", "8.0 9.0", "8.0+PTX", "", id="PTX runs on a later major version"),
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
    plain = [name.removesuffix("+PTX") for name in supported.split()]
    targets = (*(name + suffix for name in plain for suffix in ("", "a", "f")), "8.6")
    selection = architectures.intersect(tuple(requested.split()), tuple(supported.split()), targets)
    assert (" ".join(selection.compiled), " ".join(selection.lost)) == (compiled, lost)


@pytest.mark.parametrize(
    ("requested", "toolkit", "expected"),
    [
        pytest.param("8.0:8.6 8.0 9.0", "13.0", ("8.0 8.0:8.6 9.0", ""), id="beside what it is compiled for"),
        pytest.param("8.0:8.6", "12.6", ("8.0:8.6", ""), id="alone"),
        pytest.param("10.0f:10.0", "13.2", ("10.0f", ""), id="of a family and its first GPU: that family"),
        pytest.param("10.0f:10.0 9.0", "12.8", ("9.0", "10.0f:10.0"), id="a toolkit from before families"),
        pytest.param("10.0f:10.3 10.3a", "13.0", ("10.3a 10.0f:10.3f", ""), id="marked as for the family"),
        pytest.param("8.0:9.0a 9.0", "13.0", ("8.0:9.0a", "9.0"), id="in place of the plain one"),
        pytest.param("7.0:8.0 9.0", "13.0", ("9.0", "7.0:8.0"), id="PTX that no compiler writes any more"),
        pytest.param("8.0:10.7 9.0", "13.0", ("9.0", "8.0:10.7"), id="a GPU that the toolkit does not know yet"),
        pytest.param("10.0:10.1", "12.9", ("10.0:10.1", ""), id="Thor under its first number"),
        pytest.param("10.0:10.1", "13.0", ("10.0:11.0", ""), id="and under its second"),
        pytest.param("10.0f:10.1 9.0", "12.9", ("9.0", "10.0f:10.1"), id="Thor is not of that family"),
        pytest.param("12.0 12.0f", "13.0", ("12.0f", "12.0"), id="nvcc takes no plain code beside that of its family"),
        pytest.param("12.0 12.0f 12.1", "13.0", ("12.0f 12.1", "12.0"), id="but that of another GPU"),
    ],
)
def test_a_pair_is_compiled_as_it_is_where_the_toolkit_has_both(requested, toolkit, expected):
    found = architectures.cuda(tuple(requested.split()), Version(toolkit))
    assert (" ".join(found.compiled), " ".join(found.lost)) == expected


@pytest.mark.parametrize(
    ("name", "gpu", "runs"),
    [
        ("8.0:8.6", "8.9", True),
        ("8.0:8.6", "8.0", False),
        ("8.0:8.6", "9.0", False),
        ("8.0:8.7", "8.9", False),
        ("10.0f:10.3", "10.3", True),
        ("10.0f:10.3", "10.0", False),
        ("8.0:9.0a", "9.0", True),
        ("8.0:9.0a", "8.0", False),
    ],
)
def test_a_pair_runs_where_its_machine_code_does(name, gpu, runs):
    assert architectures.runs(name, gpu) is runs


def test_a_quick_build_compiles_the_pair_that_its_gpu_runs():
    requested = ("8.0", "8.0:8.6", "9.0")
    assert architectures.cuda(requested, Version("13.0"), ("8.9",)).compiled == ("8.0:8.6",)
    assert architectures.cuda(requested, Version("13.0"), ("8.0",)).compiled == ("8.0",)


CAPABILITIES = st.lists(
    st.sampled_from(
        [f"{n}.{m}{s}{p}" for n in (7, 8, 9, 10, 12) for m in (0, 5, 9) for s in ("", "a", "f") for p in ("", "+PTX")]
    ),
    unique=True,
)


@given(CAPABILITIES, st.sampled_from(architectures.generations()))
def test_every_requested_capability_is_compiled_or_reported_lost(requested, generation):
    selection = architectures.intersect(tuple(requested), generation.capabilities, generation.targets)
    names = {name.removesuffix("+PTX") for name in selection.compiled}
    assert {name for name in requested if name.removesuffix("+PTX") not in names} == set(selection.lost)
    assert names <= {name.removesuffix("+PTX") for name in requested}


@given(CAPABILITIES, st.sampled_from(architectures.generations()))
def test_the_order_of_the_request_has_no_meaning(requested, generation):
    forward = architectures.intersect(tuple(requested), generation.capabilities, generation.targets)
    assert architectures.intersect(tuple(reversed(requested)), generation.capabilities, generation.targets) == forward


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


def test_a_gpu_of_amd_that_no_kernel_gets_by_itself_is_compiled_where_it_is_named():
    assert "gfx1151" not in architectures.rocm(None).compiled
    assert architectures.rocm(("gfx1151",)) == architectures.Architectures(compiled=("gfx1151",))


def test_rocm_without_a_request_compiles_all():
    assert set(architectures.rocm(None).compiled) == set(architectures.facts()["rocm"]["archs"])


@pytest.mark.parametrize(
    ("requested", "toolkit", "expected"),
    [
        pytest.param("10.3a", "13.0", ("10.3a", ""), id="a GPU that a kernel gets only where it names it"),
        pytest.param("10.0f 10.3", "13.2", ("10.0f 10.3", ""), id="beside a family"),
        pytest.param("8.8 8.9", "13.0", ("8.8 8.9", ""), id="between two of those that every kernel gets"),
        pytest.param("10.3a", "12.8", ("", "10.3a"), id="a toolkit from before the GPU"),
        pytest.param("10.3a 12.1", "12.9", ("10.3a 12.1", ""), id="the first toolkit with it"),
        pytest.param("10.0f", "12.8", ("", "10.0f"), id="a toolkit from before families"),
        pytest.param("10.7a", "13.3", ("", "10.7a"), id="one minor release too old"),
        pytest.param("10.7a", "13.5", ("10.7a", ""), id="a newer toolkit than any entry"),
        pytest.param("6.0 9.0", "12.6", ("6.0 9.0", ""), id="an old GPU that the toolkit still has"),
        pytest.param("6.0 9.0", "13.0", ("9.0", "6.0"), id="and one that has dropped it"),
        pytest.param("7.0 8.0", "13.0", ("8.0", "7.0"), id="dropped, though a later GPU runs its code"),
        pytest.param("7.0+PTX", "13.2", ("", "7.0+PTX"), id="PTX that no compiler writes any more"),
        pytest.param("8.8", "12.6", ("", "8.8"), id="not there yet, though a later GPU runs its code"),
    ],
)
def test_a_gpu_that_is_named_is_compiled_wherever_the_toolkit_has_it(requested, toolkit, expected):
    found = architectures.cuda(tuple(requested.split()), Version(toolkit))
    assert (" ".join(found.compiled), " ".join(found.lost)) == expected


@pytest.mark.parametrize(
    ("requested", "toolkit", "expected"),
    [
        ("10.1a", "13.0", ("11.0a", "")),
        ("11.0a+PTX", "12.8", ("10.1a+PTX", "")),
        ("10.1 11.0", "13.2", ("11.0", "")),
        ("10.1 11.0", "12.9", ("10.1", "")),
        ("11.0", "12.6", ("", "11.0")),
    ],
)
def test_a_gpu_is_found_under_the_number_that_the_toolkit_gives_it(requested, toolkit, expected):
    found = architectures.cuda(tuple(requested.split()), Version(toolkit))
    assert (" ".join(found.compiled), " ".join(found.lost)) == expected


def test_every_toolkit_compiles_what_it_compiles_for_a_kernel_that_names_nothing():
    for generation in architectures.generations():
        assert {name.removesuffix("+PTX") for name in generation.capabilities} <= set(generation.targets)
