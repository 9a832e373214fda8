import os
import struct
import sysconfig
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.binary.extension import Extension, ExtensionError, binary_format

MODULES = sorted(Path(sysconfig.get_path("stdlib")).glob("lib-dynload/*.so"))
LIBRARIES = [
    Path(os.path.realpath(path)) for path in ("/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6")
]
EVERY = [path for path in (*MODULES, *LIBRARIES) if path.exists()]
SMALL = min(MODULES, key=lambda path: path.stat().st_size, default=None)

pytestmark = pytest.mark.skipif(SMALL is None, reason="this Python has its modules built in")


def by_pyelftools(path):
    """What pyelftools reads by section headers, which the reader under test does not use."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        dynamic, dynsym = elf.get_section_by_name(".dynamic"), elf.get_section_by_name(".dynsym")
        versym, verneed = elf.get_section_by_name(".gnu.version"), elf.get_section_by_name(".gnu.version_r")
        names = {}
        if isinstance(verneed, GNUVerNeedSection):
            for library, versions in verneed.iter_versions():
                names.update({version["vna_other"]: (library.name, version.name) for version in versions})
        undefined, defined = set(), set()
        for index, symbol in enumerate(dynsym.iter_symbols()):
            if not symbol.name or symbol["st_info"]["bind"] == "STB_LOCAL":
                continue
            number = versym.get_symbol(index)["ndx"] if versym else 0
            library, version = names.get(number, (None, None))
            if symbol["st_shndx"] == "SHN_UNDEF":
                undefined.add((symbol.name, version, library))
            else:
                defined.add(symbol.name)
        needed = tuple(tag.needed for tag in dynamic.iter_tags("DT_NEEDED"))
    return needed, undefined, defined


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_it_reads_what_pyelftools_reads(path):
    extension = Extension.read(path.name, path.read_bytes())
    needed, undefined, defined = by_pyelftools(path)
    assert extension.needed == needed
    assert {(symbol.name, symbol.version, symbol.library) for symbol in extension.undefined} == undefined
    assert {symbol.name for symbol in extension.defined} == defined


@pytest.mark.parametrize("path", EVERY[:20], ids=lambda path: path.name)
def test_it_reads_the_same_without_section_headers(path):
    whole = path.read_bytes()
    section_headers = struct.unpack_from("<Q", whole, 40)[0]
    bare = bytearray(whole[:section_headers])
    struct.pack_into("<Q", bare, 40, 0)
    struct.pack_into("<HHH", bare, 58, 0, 0, 0)
    assert Extension.read("a.so", bytes(bare)) == Extension.read("a.so", whole)


def test_a_module_is_known_by_its_init_function():
    assert SMALL.name.split(".")[0] in Extension.read("a.so", SMALL.read_bytes()).modules


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "is empty", id="zero length"),
        pytest.param(b"\x7fELF", "the ELF header is cut off", id="a magic alone"),
        pytest.param(b"\x7fELF\x01\x01\x01" + bytes(60), "32-bit ELF", id="32-bit"),
        pytest.param(b"\x7fELF\x02\x02\x01" + bytes(60), "big-endian ELF", id="big-endian"),
        pytest.param(b"\x7fELF\x07\x01\x01" + bytes(60), "header is damaged", id="class 7"),
        pytest.param(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\1\0" + bytes(60), "an object file", id="an object"),
        pytest.param(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\3\0" + bytes(60), "no program headers", id="empty"),
        pytest.param(b"\xcf\xfa\xed\xfe" + bytes(60), "Mach-O file of type 0", id="an empty Mach-O"),
        pytest.param(b"\xcf\xfa\xed\xfe" + bytes(9), "cut off", id="a Mach-O cut off"),
        pytest.param(b"\xce\xfa\xed\xfe" + bytes(60), "32-bit", id="32-bit Mach-O"),
        pytest.param(b"\xca\xfe\xba\xbe" + bytes(60), "universal Mach-O", id="universal Mach-O"),
        pytest.param(b"MZ" + bytes(60), "is a PE file", id="PE"),
        pytest.param(b"!<arch>\n" + bytes(60), "is not a shared library", id="an archive"),
        pytest.param(b"import torch", "is not a shared library", id="text"),
    ],
)
def test_it_refuses(content, message):
    with pytest.raises(ExtensionError, match=message) as refused:
        Extension.read("a.so", content)
    assert refused.value.help


def test_formats_are_told_apart():
    assert [binary_format(head) for head in (b"\x7fELF", b"MZ\x90\0", b"\xfe\xed\xfa\xcf", b"PK\3\4", b"")] == [
        "ELF",
        "PE",
        "Mach-O",
        None,
        None,
    ]


@given(st.integers(min_value=0))
@settings(max_examples=300, deadline=None)
def test_a_file_cut_off_anywhere_is_refused(cut):
    whole = SMALL.read_bytes()
    with pytest.raises(ExtensionError):
        Extension.read("a.so", whole[: cut % len(whole)])


@given(st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), min_size=1, max_size=20), st.booleans())
@settings(max_examples=500, deadline=None)
def test_a_damaged_file_is_read_or_refused(changes, anywhere):
    content = bytearray(SMALL.read_bytes())
    reach = len(content) if anywhere else 4096
    for position, value in changes:
        content[position % reach] = value
    try:
        Extension.read("a.so", bytes(content))
    except ExtensionError as error:
        assert error.help  # noqa: PT017  either is right; only another exception is not


@given(st.integers(min_value=0), st.integers(min_value=0), st.sampled_from([1, 2, 4, 8]))
@settings(max_examples=500, deadline=None)
def test_a_damaged_dynamic_section_is_read_or_refused(position, value, width):
    content = bytearray(SMALL.read_bytes())
    with SMALL.open("rb") as file:
        dynamic = ELFFile(file).get_section_by_name(".dynamic")
        start, size = dynamic["sh_offset"], dynamic["sh_size"]
    at = start + position % (size - 8)
    content[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
    try:
        Extension.read("a.so", bytes(content))
    except ExtensionError as error:
        assert error.help  # noqa: PT017


@given(st.binary(max_size=2000))
@settings(max_examples=300, deadline=None)
def test_noise_after_an_elf_magic_is_refused(noise):
    with pytest.raises(ExtensionError):
        Extension.read("a.so", b"\x7fELF\x02\x01\x01" + bytes(9) + b"\3\0\x3e\0" + noise)
