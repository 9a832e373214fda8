"""What takes the bytes of a wheel."""

import functools
import json

import pytest

from builder import cli, codec
from builder.audit import sizes
from builder.audit.sizes import CodeSize
from builder.wheel.archive import Wheel
from tests.given.device_code import bundle, fatbin, image, packed

CUDA = fatbin(image(2, 80, content=b"c" * 3000), image(1, 90, content=b"p" * 500)) + fatbin(
    image(2, 80, content=b"c" * 1000)
)
TARGET = "hipv4-amdgcn-amd-amdhsa__gfx90a"


@pytest.fixture
def wheel(make_wheel, compiler):
    cuda = functools.partial(make_wheel, label="torch213.cxx11.cu130", backend="cuda")
    return lambda code: cuda(library=compiler.library() + code)


def test_device_code_is_summed_by_architecture_and_the_rest_is_what_is_left(wheel, compiler):
    path = wheel(CUDA)
    found = sizes.of(Wheel.read(path))
    (library,) = [file for file in found.files if file.code]
    assert library.code == (
        CodeSize(arch="8.0", what="machine code for 8.0", ptx=False, size=4000, plain=4000, pieces=2),
        CodeSize(arch="9.0", what="PTX for 9.0", ptx=True, size=500, plain=500, pieces=1),
    )
    size = len(compiler.library() + CUDA)
    assert (library.size, library.rest) == (size, size - 4500)
    assert found.packed == path.stat().st_size
    assert codec.decode(sizes.WheelSizes, found.to_dict()) == found


@pytest.mark.parametrize("pack", [False, True], ids=["plain", "compressed"])
def test_of_a_compressed_bundle_each_target_takes_its_part_of_what_is_stored(wheel, pack):
    content = bundle(host_x86__=b"", **{TARGET: b"co" * 5000})
    path = wheel(packed(content) if pack else content)
    ((code,),) = [file.code for file in sizes.of(Wheel.read(path)).files if file.code]
    assert code.what == "code for gfx90a"
    assert (code.size == 10_000) is not pack
    assert (code.plain == code.size) is not pack
    assert 0 < code.size <= 10_000


def test_a_library_that_cannot_be_read_has_its_size_alone(wheel, compiler):
    size = len(compiler.library() + CUDA) - 600
    files = sizes.of(Wheel.read(wheel(CUDA[:-600]))).files
    assert [(file.size, file.code) for file in files if file.size == size] == [(size, ())]


def test_the_command_says_it_in_words_and_in_json(wheel, compiler, capsys):
    path = wheel(CUDA)
    cli.run(["audit", "--sizes", str(path)])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert any(line.endswith("machine code for 8.0, in 2 pieces") for line in lines)
    cli.run(["audit", "--sizes", "--json", str(path)])
    (report,) = json.loads(capsys.readouterr().out)["wheels"]
    assert report["sizes"]["files"][0]["size"] == len(compiler.library() + CUDA)
