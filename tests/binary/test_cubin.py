"""Cubins: whether two have the same code."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.binary import cubin

TEXT = b"\x10instructions"
WORKAROUND = struct.pack("<BBH", 1, 0x35, 0)
REGISTERS, PARAMETERS = struct.pack("<BBHII", 4, 0x2F, 8, 7, 40), struct.pack("<BBH", 3, 0x19, 12)
NO_BITS = 8


def made(sections=(), *, shared=64, **changed):
    """Return a cubin with sections by name, as `.text.k`: those that each has, with those that are changed."""
    contents = {
        ".note.nv.cuinfo": b"sm_86",
        ".nv.compat": b"\x02\x09",
        ".nv.info": b"all",
        ".nv.info.k": REGISTERS + PARAMETERS,
        ".text.k": TEXT,
        ".nv.constant0.k": b"\x01" * 16,
        **dict(sections),
        **{f".{name.replace('_', '.')}": content for name, content in changed.items()},
    }
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*contents, ".nv.shared.k", ".shstrtab"))
    rows, body, at = [], b"", 64
    for name, content in contents.items():
        rows.append((names.index(name.encode() + b"\0"), 1, 0, 0, at, len(content), 0, 0, 4, 0))
        body, at = body + content, at + len(content)
    rows.append((names.index(b".nv.shared.k\0"), NO_BITS, 3, 0, at, shared, 0, 0, 4, 0))
    rows.append((names.index(b".shstrtab\0"), 3, 0, 0, at, len(names), 0, 0, 1, 0))
    table = b"".join(struct.pack("<IIQQQQIIQQ", *row) for row in rows)
    head = b"\x7fELF\x02\x01" + bytes(34) + struct.pack("<Q", at + len(names)) + bytes(10)
    return head + struct.pack("<HHH", 64, len(rows), len(rows) - 1) + body + names + table


def test_how_it_was_made_is_no_difference():
    other = made({".note.nv.cuinfo": b"sm_89", ".nv.compat": b"\x02\x08"})
    assert other != made()
    assert cubin.does_as(made(), other)


def test_what_the_driver_is_told_besides_is_none_where_the_one_that_stays_has_it():
    more = made({".nv.info.k": PARAMETERS + WORKAROUND + REGISTERS})
    assert cubin.does_as(more, made())
    assert not cubin.does_as(made(), more)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(made(text_k=b"\x11instructions"), id="instruction"),
        pytest.param(made(text_k=TEXT + b"\0"), id="longer"),
        pytest.param(made(nv_constant0_k=b"\x02" * 16), id="constant"),
        pytest.param(made(nv_info=b"ALL"), id="of all kernels"),
        pytest.param(made({".nv.info.k": REGISTERS.replace(b"\x28", b"\x50") + PARAMETERS}), id="registers"),
        pytest.param(made({".nv.info.k": REGISTERS + PARAMETERS + b"\x04\x17\xff\xff"}), id="damaged records"),
        pytest.param(made({".text.l": TEXT}), id="kernel"),
        pytest.param(made(shared=128), id="shared memory"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x7fELF" + bytes(80), id="no cubin"),
    ],
)
def test_any_other_difference_is_one(other):
    assert cubin.does_as(made(), made())
    assert not cubin.does_as(made(), other)
    assert not cubin.does_as(other, made())


@given(st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 255)), min_size=1, max_size=6), st.integers(0, 300))
@settings(max_examples=300, deadline=None)
def test_a_damaged_one_is_never_more_than_different(changes, cut):
    whole = made()
    damaged = bytearray(whole)
    for position, value in changes:
        damaged[position % len(damaged)] = value
    content = bytes(damaged[: len(damaged) - cut % len(damaged)])
    code = whole[whole.index(TEXT) :][: len(TEXT)]
    if cubin.does_as(whole, content):
        assert code in content
    cubin.does_as(content, whole)
