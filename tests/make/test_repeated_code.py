"""Machine code that a library has twice is left out, and nothing else is."""

import pytest

from builder import audit
from builder.binary import device_code
from builder.binary.device_image import DeviceCodeError
from builder.make import repeated_code
from builder.matrix.variant import Variant
from builder.publish import families
from builder.wheel import kernel_wheel
from builder.wheel.archive import Bytes, Wheel
from tests import hostile
from tests.given.device_code import cubin, fatbin, image
from tests.wheels import make, package

CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
SPECIFIC, OF_FAMILY = 1 << 20, 1 << 21
OLD, NEW = b"code of the old", b"code of the new"
PTX_86, PTX_89 = (image(1, arch, content=b".version 9.0") for arch in (86, 89))


def sass(arch, code=OLD):
    suffix = {"a": SPECIFIC, "f": OF_FAMILY}.get(arch[-1], 0)
    content = cubin({".note.nv.cuinfo": arch.encode(), ".text.k": code})
    return image(2, int(arch.rstrip("af").replace(".", "")), flags=suffix, content=content)


def library(*fatbins):
    return hostile.elf({f"code{number}": fatbin(*images) for number, images in enumerate(fatbins)})


def wheel(folder, *libraries, archs=("8.0",), shared=()):
    """Return a wheel whose metadata may say which architectures run the code of others."""
    more = {f"_demo{number}.abi3.so": Bytes(content, mode=0o755) for number, content in enumerate(libraries)}
    files = package("demo", CUDA, archs=list(archs), shared=shared, more=more)
    return Wheel.read(make(folder, "demo", CUDA, requires=["torch==2.13.*"], files=files))


def left(folder, *libraries):
    """Return the architectures of what is left of each library, and those that share the code of others."""
    found, shared = repeated_code.left_out(wheel(folder, *libraries))
    contents = [member.read() for name, member in found.members.items() if name.endswith(".so")]
    images = [sorted(f"{each.kind} {each.arch}" for each in device_code.read("a.so", content)) for content in contents]
    assert [len(content) for content in contents] == [len(content) for content in libraries]
    return images, shared


@pytest.mark.parametrize(
    ("images", "kept", "shared"),
    [
        pytest.param([sass("8.6"), sass("8.9")], ["8.6"], ("8.9",), id="next"),
        pytest.param([sass("9.0"), sass("9.0a")], ["9.0"], ("9.0a",), id="specific"),
        pytest.param([sass("12.0"), sass("12.0f"), sass("12.1")], ["12.0"], ("12.0f", "12.1"), id="family"),
        pytest.param([sass("8.0"), sass("8.6"), sass("8.9")], ["8.0"], ("8.6", "8.9"), id="three"),
        pytest.param([sass("8.6"), sass("8.9", NEW)], ["8.6", "8.9"], (), id="other code"),
        pytest.param([sass("8.9"), sass("9.0")], ["8.9", "9.0"], (), id="other generation"),
        pytest.param([sass("9.0a")], ["9.0a"], (), id="nothing else"),
        pytest.param([sass("8.0"), sass("8.6", NEW), sass("8.9")], ["8.0", "8.6", "8.9"], (), id="one between"),
        pytest.param([sass("10.0f"), sass("10.3")], ["10.0f", "10.3"], (), id="only the family is left"),
        pytest.param([sass("8.6"), sass("8.9", NEW), sass("8.9")], ["8.6", "8.9"], (), id="two for one GPU"),
        pytest.param([sass("8.7"), sass("8.6")], ["8.6", "8.7"], (), id="Jetson, which runs no other"),
    ],
)
def test_code_is_left_out_where_all_gpus_that_took_it_take_the_same(tmp_path, images, kept, shared):
    assert left(tmp_path, library(images)) == ([[f"sass {arch}" for arch in sorted(kept)]], shared)


def test_ptx_stays_and_so_does_the_machine_code_it_is_listed_with(tmp_path):
    assert left(tmp_path, library([sass("8.6"), sass("8.9"), PTX_86])) == ([["ptx 8.6", "sass 8.6"]], ("8.9",))
    both = library([sass("8.6"), sass("8.9"), PTX_89])
    assert left(tmp_path, both) == ([["ptx 8.9", "sass 8.6", "sass 8.9"]], ())


def test_each_fat_binary_is_judged_by_itself(tmp_path):
    first, second = (
        library([sass("8.6"), sass("8.9")]),
        library([sass("8.6"), sass("8.9")], [sass("8.6"), sass("8.9", NEW)]),
    )
    assert left(tmp_path, first, second) == ([["sass 8.6"], ["sass 8.6", "sass 8.9"]], ())


def test_a_library_without_device_code_stays_as_it_is(tmp_path):
    plain = hostile.elf({"code": b"nothing"})
    before = wheel(tmp_path, plain)
    assert repeated_code.left_out(before) == (before, ())


def test_damaged_device_code_is_refused(tmp_path):
    with pytest.raises(DeviceCodeError, match="unknown kind"):
        repeated_code.left_out(wheel(tmp_path, library([image(66, 80)])))


def missing(found):
    return [finding.symbol for finding in audit.run(found).findings if finding.rule == "archs"]


def test_the_audit_takes_the_code_of_another_for_what_is_promised(tmp_path):
    archs = ["8.6+PTX", "8.9", "9.0", "9.0a"]
    images = [sass("8.6"), PTX_86, sass("9.0")]
    assert missing(wheel(tmp_path, library(images), archs=archs, shared=["8.9", "9.0a"])) == []
    assert missing(wheel(tmp_path, library(images), archs=archs, shared=["8.9"])) == ["9.0a"]
    assert missing(wheel(tmp_path, library(images[2:]), archs=archs[1:], shared=["8.9", "9.0a"])) == ["8.9"]


def test_the_wheel_of_a_family_keeps_what_shares_its_code(tmp_path):
    archs = ["8.6+PTX", "8.9", "9.0", "9.0a"]
    whole = wheel(tmp_path, library([sass("8.6"), PTX_86, sass("9.0")]), archs=archs, shared=["8.9", "9.0a"])
    said = {}
    for family, made_of_it in families.split(kernel_wheel.read(whole.path)):
        place = tmp_path / made_of_it.name
        place.write_bytes(made_of_it.content)
        said[str(family)] = kernel_wheel.read(place).metadata
        assert missing(Wheel.read(place)) == []
    listed = {family: (table.archs, table.shared_code) for family, table in said.items()}
    assert listed["sm80"] == (("8.6+PTX", "8.9"), ("8.9",))
    assert listed["sm90"] == (("9.0", "9.0a"), ("9.0a",))
    assert listed["sm100"] == (("8.6+PTX",), ())
