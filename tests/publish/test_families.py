"""Wheels for one family of GPUs each: what they have, that nothing is lost, and what installers are shown."""

import email
import json
import random
import re
import zipfile
from dataclasses import replace
from urllib.parse import unquote

import pytest

from builder import audit
from builder.audit import gpus
from builder.audit.gpus import choose
from builder.binary import device_code
from builder.binary import fatbin as fat_binaries
from builder.cli import run
from builder.config import Backend
from builder.config.gpus import known
from builder.matrix.variant import Variant
from builder.publish import families, index
from builder.publish.families import Family
from builder.wheel import kernel_wheel
from builder.wheel.archive import Bytes, Wheel, WheelError
from tests.given.device_code import ARCH_SPECIFIC, FAMILY_SPECIFIC, fatbin, image
from tests.wheels import library, make, package

CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
TRITON = Variant.parse("torch-cuda")
SASS, PTX = 2, 1
LIBRARY = "_demo.abi3.so"
NAME = "demo-1.0.0+torch213.cxx11.cu130-{}-cp39-abi3-manylinux_2_28_x86_64.whl"
KINDS = [(SASS, arch, flags) for arch in (75, 80, 86, 89, 90, 100, 103, 120, 121) for flags in (0, ARCH_SPECIFIC)]
KINDS += [(SASS, 100, FAMILY_SPECIFIC), (PTX, 80, 0), (PTX, 90, 0), (PTX, 120, 0), (PTX, 90, ARCH_SPECIFIC)]
NOISE = random.Random(0)


def code(*kinds):
    """Return a fat binary with an image of each kind, each with content of its own."""
    return fatbin(
        *(
            image(kind, arch, flags=flags, content=NOISE.randbytes(8 * NOISE.randint(4, 40)))
            for kind, arch, flags in kinds
        )
    )


USUAL = ((SASS, 75, 0), (SASS, 80, 0), (SASS, 86, 0), (SASS, 90, ARCH_SPECIFIC), (SASS, 100, 0), (PTX, 100, 0))


@pytest.fixture
def wheel(tmp_path):
    """Make a wheel whose library has some fat binaries."""

    def make_wheel(*fatbins, variant=CUDA, archs=None, metadata=None):
        files = package("demo", variant, archs=archs, more={LIBRARY: library(*fatbins)})
        if metadata:
            table = json.loads(files["metadata.json"].content) | metadata
            files["metadata.json"] = Bytes(json.dumps(table).encode())
        return make(tmp_path, "demo", variant, files=files)

    return make_wheel


def split(path, folder):
    """Return what a wheel is split into, written and read again: each is whole, its digests and RECORD are right."""
    found = {}
    for family, made in families.split(kernel_wheel.read(path)):
        (folder / str(family)).mkdir(exist_ok=True)
        place = folder / str(family) / made.name
        place.write_bytes(made.content)
        found[family] = kernel_wheel.read(place)
    return found


def entries(read):
    """Return every image of a library with its bytes as they are stored."""
    return {
        (each.kind, each.arch, content) for each, content in fat_binaries.entries("a.so", read.package[LIBRARY].read())
    }


def test_each_family_has_its_own_code_and_is_named_by_its_first_gpus(wheel, tmp_path):
    found = split(wheel(code(*USUAL), code(*USUAL)), tmp_path)
    archs = {str(family): read.metadata.table["backend"]["archs"] for family, read in found.items()}
    assert archs == {
        "sm70": ["7.5"],
        "sm80": ["8.0", "8.6"],
        "sm90": ["9.0a"],
        "sm100": ["10.0+PTX"],
        "sm110": ["10.0+PTX"],  # what Jetson Thor compiles when it loads; lists name PTX beside its machine code alone
        "sm120": ["10.0+PTX"],
    }
    for family, read in found.items():
        assert read.wheel.path.name == NAME.format(family.build_tag)
        assert read.metadata.table["build"]["gpus"] == str(family)
        message = email.message_from_bytes(read.wheel.members[f"{read.wheel.dist_info}/WHEEL"].read())
        assert message["Build"] == family.build_tag


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_lost_and_no_gpu_runs_other_code_than_of_the_whole_wheel(wheel, tmp_path, seed):
    draw = random.Random(seed)
    fatbins = [code(*draw.sample(KINDS, draw.randint(1, 8))) for _ in range(3)]
    path = wheel(*fatbins)
    whole = kernel_wheel.read(path)
    found = split(path, tmp_path)
    assert set().union(*(entries(read) for read in found.values())) == entries(whole)
    before = device_code.groups("a.so", whole.package[LIBRARY].read())
    for gpu in known():
        family = Family(int(gpu.arch.partition(".")[0])) if gpu.backend is Backend.CUDA else None
        if family in found:
            after = choose(gpu, device_code.groups("a.so", found[family].package[LIBRARY].read()))
            # Which special code of others it has no use for is another matter.
            assert replace(after, special=()) == replace(choose(gpu, before), special=()), gpu
        elif family is not None:
            assert not choose(gpu, before).runs


def test_nothing_but_device_code_changes_in_a_library(wheel, tmp_path):
    path = wheel(code(*USUAL), code(*USUAL))
    before = kernel_wheel.read(path).package[LIBRARY].read()
    for read in split(path, tmp_path).values():
        after = read.package[LIBRARY].read()
        assert len(after) == len(before)
        # Without fat binaries both are the same: these begin where they began.
        starts = [at for at in range(len(before)) if before.startswith(b"\x50\xed\x55\xba", at)]
        assert starts == [at for at in range(len(after)) if after.startswith(b"\x50\xed\x55\xba", at)]
        assert before[: starts[0]] == after[: starts[0]]


def test_a_fat_binary_without_code_for_a_family_keeps_its_smallest_machine_code(wheel, tmp_path):
    hopper = fatbin(
        image(PTX, 90, flags=ARCH_SPECIFIC, content=b"p" * 8),
        image(SASS, 90, flags=ARCH_SPECIFIC, content=b"a" * 64),
        image(SASS, 103, flags=ARCH_SPECIFIC, content=b"b" * 32),
    )
    found = split(wheel(code(*USUAL), hopper), tmp_path)
    kept = [content for kind, arch, content in entries(found[Family(8)]) if arch not in {"8.0", "8.6"}]
    assert kept == [b"b" * 32]


def test_the_same_wheel_gives_the_same_bytes(wheel):
    read = kernel_wheel.read(wheel(code(*USUAL)))
    assert list(families.split(read)) == list(families.split(read))


def test_linker_input_stays_as_it_is():
    one = code(*USUAL)
    data = one + one
    made = fat_binaries.trimmed("a.so", data, keep=Family(8).wanted, without=((0, len(one)),))
    assert made[: len(one)] == one
    assert made[len(one) :] != one


def test_of_the_required_gpus_a_wheel_names_those_of_its_family(wheel, tmp_path):
    required = {"require": {"gpus": ["H100", "T4", "gfx942"], "max-size": "1 MB"}}
    found = split(wheel(code(*USUAL), metadata=required), tmp_path)
    assert found[Family(9)].metadata.table["require"] == {"max-size": "1 MB", "gpus": ["H100"]}
    assert found[Family(8)].metadata.table["require"] == {"max-size": "1 MB"}


def test_the_audit_finds_as_much_in_a_wheel_of_a_family_as_in_the_whole(wheel, tmp_path):
    archs = ["7.5", "8.0", "8.6", "9.0a", "10.0+PTX"]
    path = wheel(code(*USUAL), archs=archs)
    whole = {(each.rule, each.symbol) for each in audit.run(Wheel.read(path)).findings}
    for read in split(path, tmp_path).values():
        assert {(each.rule, each.symbol) for each in audit.run(read.wheel).findings} == whole
        assert "archs" not in {rule for rule, _ in whole}


def test_a_wheel_without_device_code_of_cuda_is_of_no_family(wheel):
    assert not list(families.split(kernel_wheel.read(wheel(b"no code"))))
    assert not list(families.split(kernel_wheel.read(wheel(code(*USUAL), variant=CPU))))


def test_the_command_writes_a_folder_for_each_family(wheel, tmp_path, capsys):
    path = wheel(code(*USUAL))
    assert run(["split", str(path), "--output", str(tmp_path / "made")]) == 0
    assert [each.name for each in sorted((tmp_path / "made").iterdir())] == [
        *("sm100", "sm110", "sm120", "sm70", "sm80", "sm90")
    ]
    (hopper,) = (tmp_path / "made/sm90").iterdir()
    assert f"{hopper}: " in capsys.readouterr().out
    assert run(["split", str(hopper)]) == 2
    assert "is for one family of GPUs" in capsys.readouterr().err


def test_the_command_says_that_there_is_nothing_to_split(wheel, tmp_path, capsys):
    assert run(["split", str(wheel(b"", variant=CPU)), "--output", str(tmp_path / "made")]) == 0
    assert "has no device code of CUDA, and is of no family" in capsys.readouterr().err


DAMAGED = {
    "a size that lies": code(*USUAL)[:8] + (1 << 60).to_bytes(8, "little") + bytes(64),
    "an image beyond its end": fatbin(image(SASS, 80)[:-1]),
    "an unknown kind": fatbin(image(77, 80)),
    "many empty images": fatbin(*[image(SASS, 80, content=b"")] * 140_000),
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("command", ["split", "index"])
def test_damaged_device_code_ends_in_an_error(wheel, tmp_path, capsys, damaged, command):
    path = wheel(damaged)
    named = ["split", str(path)] if command == "split" else ["index", str(path.parent), "--families"]
    assert run([*named, "--output", str(tmp_path / "made")]) == 2
    error = capsys.readouterr().err
    assert "_demo.abi3.so" in error
    assert not list((tmp_path / "made").rglob("*.whl"))


def test_a_signed_wheel_is_not_split(tmp_path, capsys):
    more = {LIBRARY: library(code(*USUAL)), "metadata.json.sigstore": Bytes(b"{}")}
    path = make(tmp_path, "demo", CUDA, files=package("demo", CUDA, more=more))
    assert run(["split", str(path)]) == 2
    assert "is signed" in capsys.readouterr().err


def listed(site, environment, name="demo"):
    """Return the names of the files that an index lists, each of which is there with the hash that it gives."""
    page = site.get(f"for/{environment}/simple/{name}/index.json")
    if page is None:
        return None
    found = json.loads(page.content)["files"]
    for each in found:
        path = unquote(each["url"].removeprefix("../../../../"))
        assert path in site
        assert f"{path}.metadata" in site
    return [each["filename"] for each in found]


def test_an_index_has_one_for_each_family_beside_the_whole(wheel):
    path = wheel(code(*USUAL))
    site = index.build([kernel_wheel.read(path)], index.Settings(with_families=True))
    assert listed(site, "torch213-cu130") == [path.name]
    assert listed(site, "torch213-cu130-sm90") == [NAME.format("90sm")]
    assert listed(site, "torch213-cu130-sm120") == [NAME.format("120sm")]
    assert [name for name in site if name.startswith("simple/") and "sm" in name] == []
    assert b"90sm" not in site["simple/demo/index.json"].content
    assert b"demo" in site["for/torch213-cu130-sm90/simple/index.json"].content


def test_the_page_of_a_kernel_leads_to_the_index_of_each_family(wheel):
    read = kernel_wheel.read(wheel(code(*USUAL)))
    site = index.build([read], index.Settings(with_families=True))
    page = site["kernels/demo/index.html"].content.decode()
    found = re.findall(
        r'<li>([0-9.]+ \w+): <a href="../../(for/torch213-cu130-(sm\d+)/simple/)">index of (sm\d+) \([A-Z][^<]+\)<',
        page,
    )
    assert {name for _, _, name, _ in found} == {str(family) for family in families.of(read)}
    assert all(f"{place}index.html" in site and name == said for _, place, name, said in found)


def test_without_the_option_there_is_none(wheel):
    site = index.build([kernel_wheel.read(wheel(code(*USUAL)))])
    assert b"index of sm" not in site["kernels/demo/index.html"].content
    assert not [name for name in site if "sm90" in name or "families" in name]


def test_a_kernel_without_device_code_is_in_the_index_of_every_family(tmp_path):
    site = index.build([kernel_wheel.read(make(tmp_path, "demo", TRITON))], index.Settings(with_families=True))
    assert (
        listed(site, "torch213-cu130-sm70")
        == listed(site, "torch213-cu130-sm120")
        == ["demo-1.0.0+torch.cuda-py3-none-any.whl"]
    )
    assert listed(site, "torch213-cpu-sm90") is None


def test_code_for_one_family_alone_is_listed_as_it_is(wheel):
    path = wheel(code((SASS, 90, ARCH_SPECIFIC)))
    site = index.build([kernel_wheel.read(path)], index.Settings(with_families=True))
    assert listed(site, "torch213-cu130-sm90") == [path.name]
    assert listed(site, "torch213-cu130-sm80") is None


def test_an_index_with_families_is_the_same_when_it_is_made_again_and_published_whole(wheel, tmp_path, capsys):
    made, published = tmp_path / "made", tmp_path / "published"
    command = ["index", str(wheel(code(*USUAL)).parent), "--output", str(made), "--families"]
    assert [run(command), run(command)] == [0, 0]
    assert "1 wheel, 0 of them new" in capsys.readouterr().out
    assert run(["publish", str(made), str(published)]) == 0
    files = {path.relative_to(made): path.read_bytes() for path in made.rglob("*") if path.is_file()}
    assert {path.relative_to(published): path.read_bytes() for path in published.rglob("*") if path.is_file()} == files
    assert len([path for path in files if path.parts[:2] == ("files", "families")]) == 12


def test_an_index_refuses_a_wheel_of_a_family(wheel, tmp_path):
    found = split(wheel(code(*USUAL)), tmp_path)
    with pytest.raises(WheelError, match="is for one family of GPUs"):
        index.build([found[Family(8)]])


def test_the_pieces_of_a_wheel_are_zip_files_with_nothing_wrong(wheel, tmp_path):
    for read in split(wheel(code(*USUAL)), tmp_path).values():
        with zipfile.ZipFile(read.wheel.path) as archive:
            assert archive.testzip() is None
        assert gpus.of_libraries(read.wheel, Backend.CUDA)
