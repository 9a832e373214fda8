"""The registers, the memory and the spills of functions of device code, from bytes alone."""

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.binary import device_code, device_image
from builder.binary.demangled import demangled
from builder.binary.device_image import DeviceCodeError
from builder.binary.functions import Function
from tests.given.device_code import LOAD, STORE, bundle, compiled, fatbin, image, sass

OPTIONS = "-maxrregcount 32 -arch sm_90 -m 64"


def functions(content):
    return [function for _, function in device_code.functions("a.so", b"\x7fELF" + content)]


def of(cubin):
    (function,) = functions(fatbin(image(2, 90, content=cubin)))
    return function


def test_a_cubin_says_what_each_of_its_functions_takes():
    content = compiled(
        registers=32, stack=24, moves=[(STORE, 4), (STORE, 16), (LOAD, 8)], threads=256, limit=32, options=OPTIONS
    )
    (found,) = device_code.functions("a.so", b"\x7fELF" + fatbin(image(2, 90, content=content)))
    assert found == (
        sass("9.0"),
        Function(
            name="_Z4tilePf",
            registers=32,
            stack=24,
            shared=64,
            constant=16,
            size=64,
            threads=256,
            spill_stores=20,
            spill_loads=8,
            limit=32,
            options=OPTIONS,
        ),
    )


def test_an_array_of_a_thread_is_no_spill():
    function = of(compiled(stack=256, arrays=[(STORE, 4), (LOAD, 4)]))
    assert (function.stack, function.spill_stores, function.spill_loads) == (256, 0, 0)


def test_of_an_older_ptxas_spills_are_not_known_where_a_thread_has_memory_of_its_own():
    for version, stack, known in ((126, 8, 0), (1, 8, 0), (125, 8, None), (125, 0, 0)):
        assert of(compiled(stack=stack, version=version)).spill_stores == known


def test_a_mark_of_another_instruction_leaves_spills_unknown():
    assert of(compiled(stack=8, moves=[(0x123, 4)])).spill_stores is None


def test_a_function_that_calls_itself_has_no_bound_of_its_stack():
    assert of(compiled(stack=0xFFFFFFFF)).stack is None


def test_ptx_has_no_functions_to_measure():
    assert functions(fatbin(image(1, 90, content=b".version 9.0"))) == []


def packed(value):
    """Return a value in MessagePack, as LLVM writes it."""
    match value:
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int():
            return struct.pack(">BI", 0xCE, value)
        case str():
            return struct.pack(">BB", 0xD9, len(value)) + value.encode()
        case list():
            return bytes([0x90 | len(value)]) + b"".join(map(packed, value))
        case dict():
            entries = b"".join(packed(key) + packed(each) for key, each in value.items())
            return struct.pack(">BH", 0xDE, len(value)) + entries


KERNEL = {
    ".name": "_Z4tilePf",
    ".vgpr_count": 128,
    ".sgpr_count": 14,
    ".vgpr_spill_count": 703,
    ".sgpr_spill_count": 0,
    ".group_segment_fixed_size": 1024,
    ".private_segment_fixed_size": 2776,
    ".kernarg_segment_size": 12,
    ".max_flat_workgroup_size": 1024,
    ".wavefront_size": 64,
    ".args": [{".offset": 0, ".size": 8}],
    ".uses_dynamic_stack": False,
}


def code_object(document):
    """Return a code object with this note and the symbol of one kernel."""
    content = packed(document) if isinstance(document, dict) else document
    note = struct.pack("<III8s", 7, len(content), 32, b"AMDGPU") + content.ljust(-(-len(content) // 4) * 4, b"\0")
    strings = b"\0_Z4tilePf\0"
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0, 484)
    at = 64 + 3 * 56
    places = [at, at + len(note), at + len(note) + len(symbols)]
    hashes = struct.pack("<IIIII", 1, 2, 1, 0, 0)
    tags = [(4, places[2] + 16), (5, places[2] + 16 + 24), (6, places[1]), (10, len(strings)), (0, 0)]
    body = note + symbols + bytes(16) + hashes.ljust(24, b"\0") + strings
    dynamic = b"".join(struct.pack("<QQ", *tag) for tag in tags)
    end = at + len(body)
    segments = ((1, 0, at, at, len(body) + len(dynamic)), (2, 0, end, end, len(dynamic)), (4, 0, at, at, len(note)))
    head = struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 64, 3, 224, 1, 0, 64, 0, 0, 64, 56, 3, 64, 0, 0)
    table = b"".join(struct.pack("<IIQQQQQQ", *row[:4], row[3], row[4], row[4], 4) for row in segments)
    return head + table + body + dynamic


TARGET = "hipv4-amdgcn-amd-amdhsa__gfx90a"


def test_a_code_object_says_what_each_of_its_kernels_takes():
    assert functions(bundle(**{TARGET: code_object({"amdhsa.kernels": [KERNEL]})})) == [
        Function(
            name="_Z4tilePf",
            registers=128,
            stack=2776,
            shared=1024,
            constant=12,
            size=484,
            threads=1024,
            spilled=703,
            scalars=14,
            spilled_scalars=0,
            wave=64,
        )
    ]


DEEP = b"\x81\xd9\x01a" + b"\x91" * 100_000


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(fatbin(image(2, 90, content=b"c" * 100)), id="no cubin"),
        pytest.param(fatbin(image(2, 90, content=compiled().replace(b"\x04\x2f\x08\x00\x01", b"\x04\x2f\x08\x00\x07"))),
                     id="a symbol that is not there"),
        pytest.param(bundle(**{TARGET: b"co" * 100}), id="no code object"),
        pytest.param(bundle(**{TARGET: code_object(DEEP)}), id="a document too deep"),
        pytest.param(bundle(**{TARGET: code_object(b"\xdd\xff\xff\xff\xff")}), id="a list that is cut off"),
        pytest.param(bundle(**{TARGET: code_object({"amdhsa.kernels": 7})}), id="no list of kernels"),
        pytest.param(bundle(**{TARGET: code_object({"amdhsa.kernels": [KERNEL | {".vgpr_count": "9"}]})}), id="text"),
        pytest.param(bundle(**{TARGET: code_object({"amdhsa.kernels": [{}]})}), id="a kernel without a name"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_refused_in_words(content):
    with pytest.raises(DeviceCodeError, match=r"^'a.so' has a damaged (cubin|code object) at byte "):
        functions(content)


def test_code_of_many_targets_in_the_same_bytes_is_read_as_far_as_the_budget_goes():
    many = bundle(**{f"hipv4-amdgcn-amd-amdhsa__gfx9{index:02x}": b"" for index in range(200)})
    large, rows = bytearray(many + code_object({"amdhsa.kernels": [KERNEL]}).ljust(4 << 20, b"\0")), 32
    for _ in range(200):
        length = struct.unpack_from("<Q", large, rows + 16)[0]
        struct.pack_into("<QQ", large, rows, len(many), 4 << 20)
        rows += 24 + length
    with pytest.raises(DeviceCodeError, match="has code objects that unpack to more than 32 times its size"):
        functions(bytes(large))


@given(changes=st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 255)), min_size=1, max_size=8))
@settings(max_examples=400, deadline=None)
def test_a_damaged_cubin_ends_in_words_or_in_figures(changes):
    damaged = bytearray(compiled(moves=[(STORE, 4)], threads=64, options=OPTIONS))
    for position, value in changes:
        damaged[position % len(damaged)] = value
    with contextlib.suppress(DeviceCodeError):
        assert all(each.size >= 0 for each in functions(fatbin(image(2, 90, content=bytes(damaged)))))


@given(changes=st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 255)), min_size=1, max_size=8))
@settings(max_examples=400, deadline=None)
def test_a_damaged_code_object_ends_in_words_or_in_figures(changes):
    damaged = bytearray(code_object({"amdhsa.kernels": [KERNEL, KERNEL]}))
    for position, value in changes:
        damaged[position % len(damaged)] = value
    with contextlib.suppress(DeviceCodeError):
        assert all(each.size >= 0 for each in functions(bundle(**{TARGET: bytes(damaged)})))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("_ZN2my5heavyEPfi", "my::heavy(float*, int)"),
        ("_Z4tileILi256EEvPf", "void tile<256>(float*)"),
        ("plain", "plain"),
        ("_Znonsense", "_Znonsense"),
        ("_Z" + "9" * 100_000, "_Z" + "9" * 100_000),
    ],
)
def test_a_name_is_shown_as_its_source_has_it(name, shown):
    assert demangled(name) == shown


@pytest.mark.parametrize("what", ["functions", "records about functions", "bytes of names of functions"])
def test_no_more_is_read_than_a_budget_allows(monkeypatch, what):
    many = fatbin(*(image(2, 80, content=compiled()) for _ in range(3)))
    assert len(functions(many)) == 3
    monkeypatch.setitem(device_image.MOST, what, 2)
    with pytest.raises(DeviceCodeError, match=f"^'a.so' has more {what} than are read"):
        functions(many)
