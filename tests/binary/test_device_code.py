import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.binary.device_code import images_of, read
from builder.binary.device_image import DeviceCodeError, Image
from tests.given.device_code import ARCH_SPECIFIC, FAMILY_SPECIFIC, bundle, fatbin, image, packed, sass


@pytest.mark.parametrize(
    ("content", "found"),
    [
        pytest.param(b"no device code at all" * 100, set(), id="none"),
        pytest.param(fatbin(image(2, 80)), {sass("8.0")}, id="machine code"),
        pytest.param(fatbin(image(2, 90, flags=ARCH_SPECIFIC)), {sass("9.0a")}, id="9.0a"),
        pytest.param(fatbin(image(2, 100, flags=FAMILY_SPECIFIC)), {sass("10.0f")}, id="10.0f"),
        pytest.param(fatbin(image(1, 120)), {Image(kind="ptx", arch="12.0")}, id="PTX"),
        pytest.param(fatbin(image(8, 80)), {Image(kind="lto", arch="8.0")}, id="LTO"),
        pytest.param(fatbin(image(2, 75), image(2, 80)), {sass("7.5"), sass("8.0")}, id="two in one"),
        pytest.param(
            fatbin(image(2, 75)) + bytes(13) + fatbin(image(2, 80)), {sass("7.5"), sass("8.0")}, id="two apart"
        ),
        pytest.param(struct.pack("<IHHQ", 0xBA55ED50, 7, 16, 9), set(), id="a magic by chance"),
        pytest.param(b"__CLANG_OFFLOAD_BUNDLE__", set(), id="a bundle's name alone"),
        pytest.param(b"CCOB" + bytes(60), set(), id="CCOB by chance"),
    ],
)
def test_cuda_images(content, found):
    assert read("a.so", b"\x7fELF" + content) == found


HIP = {
    "host-x86_64-unknown-linux__": b"",
    "hipv4-amdgcn-amd-amdhsa__gfx90a": b"co",
    "hipv4-amdgcn-amd-amdhsa__gfx942:sramecc+": b"co",
}
GFX = {Image(kind="gcn", arch="gfx90a"), Image(kind="gcn", arch="gfx942:sramecc+")}


@pytest.mark.parametrize(
    "content",
    [bundle(**HIP), *(packed(bundle(**HIP), version=version) for version in (1, 2, 3))],
    ids=["plain", "packed 1", "packed 2", "packed 3"],
)
def test_hip_images(content):
    assert read("a.so", b"\x7fELF" + content + b"tail") == GFX


def test_ranges_that_are_linker_input_do_not_count():
    content = fatbin(image(2, 75)) + fatbin(image(2, 80))
    assert read("a.so", content, without=((0, 20),)) == {sass("8.0")}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(fatbin(image(2, 80))[:-8], "damaged fat binary", id="cut off"),
        pytest.param(fatbin(image(2, 80)[:40]), "damaged fat binary", id="half an image"),
        pytest.param(fatbin(image(66, 80)), "unknown kind 66 for 8.0", id="unknown kind"),
        pytest.param(bundle(**HIP)[:-1], "damaged offload bundle", id="bundle cut off"),
        pytest.param(packed(bundle(**HIP))[:-20], "damaged offload bundle", id="packed and cut off"),
        pytest.param(packed(b"something else"), "damaged offload bundle", id="packed noise"),
    ],
)
def test_what_cannot_be_read_is_refused(content, message):
    with pytest.raises(DeviceCodeError, match=message) as refused:
        read("a.so", content)
    assert refused.value.help


def test_an_empty_cubin_is_no_device_code():
    """nvcc adds one for its default architecture when the link names none."""
    names = b"\0.shstrtab\0.nv.info\0"
    sections = struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 64, len(names), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 11, 1, 0, 0, 64, 0, 0, 0, 1, 0)
    head = (
        b"\x7fELF\x02\x01" + bytes(34) + struct.pack("<Q", 64 + len(names)) + bytes(10) + struct.pack("<HHH", 64, 2, 0)
    )
    assert read("a.so", fatbin(image(2, 75, content=head + names + sections))) == frozenset()
    with_kernel = names.replace(b".nv.info", b".text.k\0")
    assert read("a.so", fatbin(image(2, 75, content=head + with_kernel + sections))) == {sass("7.5")}


def test_a_list_of_architectures_means_these_images():
    assert images_of(("9.0a", "12.0+PTX", "gfx90a")) == {
        sass("9.0a"),
        sass("12.0"),
        Image(kind="ptx", arch="12.0"),
        Image(kind="gcn", arch="gfx90a"),
    }


@given(
    st.sampled_from([fatbin(image(2, 80), image(1, 90)), bundle(**HIP), packed(bundle(**HIP))]),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=8),
    st.integers(0, 400),
)
@settings(max_examples=500, deadline=None)
def test_damaged_device_code_is_read_or_refused(content, changes, cut):
    damaged = bytearray(content)
    for position, value in changes:
        damaged[position % len(damaged)] = value
    try:
        read("a.so", bytes(damaged[: len(damaged) - cut % 8]))
    except DeviceCodeError as error:
        assert error.help  # noqa: PT017  either is right; only another exception is not
