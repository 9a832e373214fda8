"""Device code that is compressed: what is read of it, and what a hostile one costs."""

import struct
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.binary import unpacking
from builder.binary.device_code import read
from builder.binary.device_image import DeviceCodeError, Image
from builder.binary.unpacking import UnpackError
from builder.errors import ToolError
from tests.binary.test_device_code import GFX, HIP
from tests.given.device_code import bundle, fatbin, image, packed

LZ4, ZSTANDARD = 0x2000, 0x8000
NAMES = b"\0.shstrtab\0.nv.info\0"


zstd = unpacking.zstandard()


def cubin(names=NAMES):
    sections = struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 11, 1, 0, 0, 64, 0, 0, 0, 1, 0)
    table = struct.pack("<Q", 64 + len(names)) + bytes(10) + struct.pack("<HHH", 64, 2, 0)
    return b"\x7fELF\x02\x01" + bytes(34) + table + names + sections


def literals(content):
    """Return a block of LZ4 that repeats nothing."""
    more = len(content) - 15
    return b"\xf0" + b"\xff" * (more // 255) + bytes([more % 255]) + content


@pytest.mark.parametrize("names", [NAMES, NAMES.replace(b".nv.info", b".text.k\0")], ids=["empty", "kernel"])
def test_an_empty_cubin_that_is_compressed_is_no_device_code(names):
    whole = cubin(names)
    expected = frozenset() if names == NAMES else {Image(kind="sass", arch="7.5")}
    for content, flags in ((zstd.compress(whole), ZSTANDARD), (literals(whole), LZ4)):
        compressed = image(2, 75, content=content, whole=len(whole), flags=flags)
        assert read("a.so", fatbin(compressed)) == expected


@pytest.mark.parametrize("version", [1, 2, 3])
def test_bundles_that_are_compressed_with_zstandard_are_read(version):
    content = bundle(**HIP)
    compressed = packed(content, body=zstd.compress(content), version=version, method=1)
    assert read("a.so", b"\x7fELF" + compressed + b"tail") == GFX


def test_a_python_without_zstandard_says_what_brings_it(monkeypatch):
    for name in ("compression.zstd", "backports.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    unpacking.zstandard.cache_clear()
    try:
        packed_image = image(2, 75, content=b"(packed)", whole=1000, flags=ZSTANDARD)
        for content in (packed(bundle(**HIP), body=b"(packed)", method=1), fatbin(packed_image)):
            with pytest.raises(ToolError, match="Zstandard, which this Python does not read") as refused:
                read("a.so", content)
            assert "pip install backports.zstd" in refused.value.help
    finally:
        unpacking.zstandard.cache_clear()


def test_lz4_repeats_what_it_points_to():
    assert unpacking.lz4(b"\x1fa\x01\x00\x05" + b"\x50bcdef", 100) == b"a" * 25 + b"bcdef"
    assert unpacking.lz4(b"\x1fa\x01\x00" + b"\xff" * 4000, 4096) == b"a" * 4096
    with pytest.raises(UnpackError, match="before its beginning"):
        unpacking.lz4(b"\x10a\x02\x00", 100)


def test_damaged_small_cubins_are_refused():
    for flags in (LZ4, ZSTANDARD):
        with pytest.raises(DeviceCodeError, match="damaged fat binary"):
            read("a.so", fatbin(image(2, 75, content=b"\x10a\x09\x00" + bytes(20), whole=100, flags=flags)))


BOMBS = """
import resource, struct, sys, time
from builder.binary import unpacking
from tests.binary.test_unpacking import ZSTANDARD, LZ4
from tests.given.device_code import bundle, fatbin, image, packed
from tests.binary.test_device_code import HIP
from builder.binary.device_code import read
from builder.binary.device_image import DeviceCodeError
zstd = unpacking.zstandard()
head = bundle(**HIP)
pack = zstd.ZstdCompressor()
body = pack.compress(head) + b"".join(pack.compress(bytes(1 << 20)) for _ in range(1 << 7)) + pack.flush()
parameter = zstd.CompressionParameter
wide = zstd.compress(head, options={parameter.window_log: 30, parameter.content_size_flag: 0})
long = fatbin(image(2, 75, content=b"\\x1fa\\x01\\x00" + b"\\xff" * 200_000, whole=4096, flags=LZ4))
inputs = {
    "bomb": packed(head, body=body, version=3, method=1) * 200,
    "lies": struct.pack("<4sHHQQQ", b"CCOB", 3, 1, 32 + len(body), 1 << 62, 7) + body,
    "window": packed(head, body=wide, version=3, method=1),
    "many": packed(head, body=zstd.compress(head), version=3, method=1) * 60_000, "lz4": long * 20,
    "cubins": fatbin(*[image(2, 75, content=zstd.compress(bytes(4096)), whole=4096, flags=ZSTANDARD)] * 60_000),
}
resource.setrlimit(resource.RLIMIT_DATA, (512 << 20, 512 << 20))
for name, content in inputs.items():
    start = time.process_time()
    try:
        found = len(read("a.so", content))
    except DeviceCodeError as error:
        found = error.message
    print(name, len(content), round(time.process_time() - start, 2), found)
    assert time.process_time() - start < 60, name
"""


def test_bombs_cost_bounded_time_and_memory():
    done = subprocess.run([sys.executable, "-c", BOMBS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


CONTENTS = st.sampled_from(["bundle", "cubin", "lz4"])


@given(CONTENTS, st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=8), st.integers(0, 7))
@settings(max_examples=300, deadline=None)
def test_damaged_compressed_code_is_read_or_refused(kind, changes, cut):
    size = len(cubin())
    whole = {
        "bundle": packed(bundle(**HIP), version=3),
        "cubin": fatbin(image(2, 75, content=b"\x28\xb5\x2f\xfd" + cubin()[:200], flags=ZSTANDARD, whole=size)),
        "lz4": fatbin(image(2, 75, content=literals(cubin()), flags=LZ4, whole=size)),
    }[kind]
    damaged = bytearray(whole)
    for position, value in changes:
        damaged[position % len(damaged)] = value
    try:
        read("a.so", bytes(damaged[: len(damaged) - cut]))
    except DeviceCodeError as error:
        assert error.help  # noqa: PT017  either is right; only another exception is not


@pytest.mark.parametrize("padding", range(8))
def test_what_stands_behind_a_block_of_lz4_is_not_read(padding):
    assert unpacking.lz4(b"\x50hello" + bytes(padding), 5) == b"hello"
