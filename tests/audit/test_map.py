"""Device code is found in a file that was read before, too: a map searches from where it was read to."""

import mmap

import pytest

from builder.binary import device_code


@pytest.mark.parametrize("read", [0, 10_000])
def test_device_code_is_found_wherever_the_file_was_read_to(tmp_path, read):
    image = (2).to_bytes(2, "little") + bytes(2) + (64).to_bytes(4, "little") + (8).to_bytes(8, "little")
    image += bytes(12) + (90).to_bytes(4, "little") + bytes(32) + b"cubin..."
    header = b"\x50\xed\x55\xba" + (1).to_bytes(2, "little") + (16).to_bytes(2, "little")
    header += len(image).to_bytes(8, "little")
    path = tmp_path / "library.so"
    path.write_bytes(bytes(5_000) + header + image + bytes(6_000))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        data.seek(read)
        assert {image.arch for image in device_code.read("library.so", data)} == {"9.0"}
