"""Cubins: whether two have the same code."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.binary import cubin
from tests.given.device_code import PARAMETERS, REGISTERS, TEXT
from tests.given.device_code import cubin as code_of

WORKAROUND = struct.pack("<BBH", 1, 0x35, 0)


def test_how_it_was_made_is_no_difference():
    other = code_of({".note.nv.cuinfo": b"sm_89", ".nv.compat": b"\x02\x08"})
    assert other != code_of()
    assert cubin.does_as(code_of(), other)


def test_what_the_driver_is_told_besides_is_none_where_the_one_that_stays_has_it():
    more = code_of({".nv.info.k": PARAMETERS + WORKAROUND + REGISTERS})
    assert cubin.does_as(more, code_of())
    assert not cubin.does_as(code_of(), more)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(code_of(text_k=b"\x11instructions"), id="instruction"),
        pytest.param(code_of(text_k=TEXT + b"\0"), id="longer"),
        pytest.param(code_of(nv_constant0_k=b"\x02" * 16), id="constant"),
        pytest.param(code_of(nv_info=b"ALL"), id="of all kernels"),
        pytest.param(code_of({".nv.info.k": REGISTERS.replace(b"\x28", b"\x50") + PARAMETERS}), id="registers"),
        pytest.param(code_of({".nv.info.k": REGISTERS + PARAMETERS + b"\x04\x17\xff\xff"}), id="damaged records"),
        pytest.param(code_of({".text.l": TEXT}), id="kernel"),
        pytest.param(code_of(shared=128), id="shared memory"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x7fELF" + bytes(80), id="no cubin"),
    ],
)
def test_any_other_difference_is_one(other):
    assert cubin.does_as(code_of(), code_of())
    assert not cubin.does_as(code_of(), other)
    assert not cubin.does_as(other, code_of())


@given(st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 255)), min_size=1, max_size=6), st.integers(0, 300))
@settings(max_examples=300, deadline=None)
def test_a_damaged_one_is_never_more_than_different(changes, cut):
    whole = code_of()
    damaged = bytearray(whole)
    for position, value in changes:
        damaged[position % len(damaged)] = value
    content = bytes(damaged[: len(damaged) - cut % len(damaged)])
    code = whole[whole.index(TEXT) :][: len(TEXT)]
    if cubin.does_as(whole, content):
        assert code in content
    cubin.does_as(content, whole)
