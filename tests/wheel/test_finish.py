"""A compiled wheel becomes the one that users get: its name, its tag and its members."""

import json
import re
import struct
import time
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest
from packaging.version import Version as PackageVersion

from builder.config import Backend, Framework
from builder.config.text import Source
from builder.errors import AuditError, BuilderError
from builder.kernel import Kernel
from builder.metadata import RebuildInputs
from builder.render import environment
from builder.wheel.archive import EPOCH, Bytes, Wheel
from builder.wheel.finish import BuildFacts, archs_of, finish
from builder.wheel.options import BuildOptions
from tests.hostile import GNU_HASH, VERNEED, elf
from tests.wheel.cells import cells

CPU = "torch213-cxx11-cpu-x86_64-linux"
LABEL = "torch213.cxx11.cpu"
STAMP = 1_600_000_000


def library(glibc):
    """Return a library that needs a version of glibc."""
    names = b"\0libc.so.6\0" + f"GLIBC_{glibc}\0".encode()
    needs = struct.pack("<HHIII", 1, 1, 1, 16, 0) + struct.pack("<IHHII", 0, 0, 2, 11, 0)
    table = struct.pack("<IIII", 1, 1, 0, 0) + bytes(8)
    return elf({"strings": names, "versions": needs, "hash": table}, [(VERNEED, "versions"), (GNU_HASH, "hash")])


PACKAGE = {
    "__init__.py": b"",
    "_ops.abi3.so": library("2.17"),
    "metadata.json": json.dumps({"name": "demo-kernel", "backend": {"type": "cpu"}}).encode(),
}


def finished(*, package=PACKAGE, change=lambda cell: cell, archs=None, fixed=True, **asked):
    config, found = cells(framework='[torch]\nsrc = ["b.cpp"]')
    members = {f"demo_kernel/{name}": Bytes(content) for name, content in package.items()}
    members["elsewhere/x.py"] = Bytes(b"")
    members["demo_kernel-1.0.0.dist-info/licenses/NOTICE"] = Bytes(b"Ours.", mode=0o755)
    version = PackageVersion("1.0.0")
    raw = Wheel(
        path=Path("demo_kernel-1.0.0-py3-none-any.whl"),
        name="demo-kernel",
        version=version,
        tags=frozenset(),
        members=members,
    )
    kernel = Kernel(root=Path(), source=Source(name="build.toml", text=""), config=config, schema=5)
    options = BuildOptions(**asked, epoch=STAMP)
    inputs = RebuildInputs(project="a")
    facts = BuildFacts(framework_version="2.13.0", inputs=inputs, archs=archs, options=options, fixed=fixed)
    return finish(raw, kernel=kernel, cell=change(found[CPU]), facts=facts)


@pytest.mark.parametrize(
    ("asked", "version"),
    [
        pytest.param({}, f"1.0.0+{LABEL}", id="nothing"),
        pytest.param({"version": "1.2.3"}, f"1.2.3+{LABEL}", id="a version"),
        pytest.param({"label": False}, "1.0.0", id="no label"),
        pytest.param({"version": "1.2.3", "label": False}, "1.2.3", id="a version without a label"),
        pytest.param({"only": ("9.0",)}, f"1.0.0.dev0+{LABEL}", id="quick"),
        pytest.param({"only": ("9.0",), "version": "1.2rc1"}, f"1.2rc1.dev0+{LABEL}", id="a version of a quick one"),
        pytest.param({"only": ("9.0",), "version": "1.2.dev3"}, f"1.2.dev3+{LABEL}", id="a developmental version"),
    ],
)
def test_a_wheel_is_named_by_its_kernel_its_version_and_its_cell(asked, version):
    assert finished(**asked).name == f"demo_kernel-{version}-cp39-abi3-manylinux_2_28_x86_64.whl"


@pytest.mark.parametrize(
    ("version", "message"),
    [
        pytest.param("one", "'one' is not a version", id="no version"),
        pytest.param("2.0.0", "does not fit", id="of another major"),
        pytest.param("1.0.0+mine", "does not fit", id="with a label of its own"),
    ],
)
def test_a_version_that_does_not_fit_the_kernel_is_refused(version, message):
    with pytest.raises(BuilderError, match=message):
        finished(version=version)


def test_a_wheel_has_the_package_and_what_describes_it_and_nothing_else():
    with zipfile.ZipFile(BytesIO(finished(archs=("1", "2")).content)) as archive:
        info = f"demo_kernel-1.0.0+{LABEL}.dist-info"
        modes = {each.filename: each.external_attr >> 16 & 0o777 for each in archive.infolist()}
        assert modes.keys() == {
            *(f"demo_kernel/{name}" for name in PACKAGE),
            *(
                f"{info}/{name}"
                for name in ("METADATA", "WHEEL", "RECORD", "sboms/demo-kernel.cdx.json", "licenses/NOTICE")
            ),
        }
        assert [name for name, mode in modes.items() if mode == 0o755] == ["demo_kernel/_ops.abi3.so"]
        table = json.loads(archive.read("demo_kernel/metadata.json"))
        assert (table["backend"]["archs"], table["build"]) == (["1", "2"], {"project": "a"})
        assert b"Root-Is-Purelib: false\nTag: cp39-abi3-manylinux_2_28_x86_64\n" in archive.read(f"{info}/WHEEL")
        assert b"Requires-Dist: torch==2.13.*\n" in archive.read(f"{info}/METADATA")


@pytest.mark.parametrize(("fixed", "same"), [(True, True), (False, False)])
def test_a_wheel_that_is_delivered_has_the_time_that_is_given(fixed, same):
    with zipfile.ZipFile(BytesIO(finished(fixed=fixed).content)) as archive:
        assert {each.date_time == time.gmtime(STAMP)[:6] for each in archive.infolist()} == {same}
    assert time.gmtime(EPOCH)[:6] == (1980, 1, 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("only", "said"),
    [
        ((), {}),
        (("8.0", "9.0a"), {"archs": ["8.0", "9.0a"], "not-for-release": "built for 8.0, 9.0a alone"}),
    ],
)
def test_a_quick_wheel_says_for_what_it_is_and_a_full_one_nothing(only, said):
    with zipfile.ZipFile(BytesIO(finished(only=only).content)) as archive:
        assert json.loads(archive.read("demo_kernel/metadata.json"))["build"] == {"project": "a", **said}


def test_a_build_that_left_no_metadata_is_refused():
    with pytest.raises(BuilderError, match=r"left no demo_kernel/metadata\.json"):
        finished(package={"__init__.py": b""})


@pytest.mark.parametrize("backend", [Backend.CPU, Backend.METAL], ids=str)
def test_the_tag_names_the_macos_that_a_rendered_project_compiles_for(backend):
    template = environment().get_template(f"_project/{backend}.cmake.j2")
    text = template.render(macos=backend.facts.macos, name="demo", languages="CXX")
    tag = finished(change=lambda cell: replace(cell, system="aarch64-darwin", backend=backend)).name
    target = re.search(r"CMAKE_OSX_DEPLOYMENT_TARGET ([0-9.]+) ", text)[1]
    assert f"-macosx_{target.replace('.', '_')}_" in tag


@pytest.mark.parametrize(
    ("change", "package", "tag"),
    [
        pytest.param({"framework": Framework.TORCH_NOARCH}, PACKAGE, "py3-none-any", id="pure Python"),
        pytest.param({"system": "aarch64-darwin"}, PACKAGE, "cp39-abi3-macosx_15_0_arm64", id="macOS"),
        pytest.param({"system": "x86_64-darwin"}, PACKAGE, "cp39-abi3-macosx_15_0_x86_64", id="macOS on Intel"),
        pytest.param(
            {"system": "aarch64-darwin", "backend": Backend.METAL}, PACKAGE, "cp39-abi3-macosx_26_0_arm64", id="Metal"
        ),
        pytest.param(
            {},
            {"_ops.so": library("2.17"), "metadata.json": PACKAGE["metadata.json"]},
            "py3-none-manylinux_2_28_x86_64",
            id="a library without Python",
        ),
    ],
)  # fmt: skip
def test_the_tag_says_where_a_wheel_runs(change, package, tag):
    assert finished(package=package, change=lambda cell: replace(cell, **change)).name.endswith(f"-{tag}.whl")


@pytest.mark.parametrize(
    ("glibc", "accepted", "policy"),
    [
        pytest.param("2.17", "manylinux_2_28", "manylinux_2_28", id="older than that of torch"),
        pytest.param("2.28", "manylinux_2_28", "manylinux_2_28", id="that of torch"),
        pytest.param("2.17", "manylinux_2_34", "manylinux_2_28", id="no newer than needed"),
        pytest.param("2.34", "manylinux_2_34", "manylinux_2_34", id="the newest that is accepted"),
        pytest.param("2.34", "manylinux_2_39", "manylinux_2_34", id="older than what is accepted"),
        pytest.param("2.34", "manylinux_2_28", None, id="newer than what is accepted"),
        pytest.param("2.99", "manylinux_2_39", None, id="newer than all"),
    ],
)
def test_the_oldest_policy_that_a_library_meets_is_promised_if_it_is_accepted(glibc, accepted, policy):
    package = {**PACKAGE, "_ops.abi3.so": library(glibc)}
    if policy is None:
        with pytest.raises(AuditError, match=f"GLIBC_{glibc}"):
            finished(package=package, policy=accepted)
    else:
        assert finished(package=package, policy=accepted).name.endswith(f"-{policy}_x86_64.whl")


def test_what_is_no_policy_is_refused():
    with pytest.raises(BuilderError, match="'manylinux_9' is not a manylinux policy"):
        finished(policy="manylinux_9")


@pytest.mark.parametrize(
    ("plan", "archs"), [(None, None), ({}, None), ({"archs": ["8.0", "9.0"]}, ("8.0", "9.0"))], ids=repr
)
def test_the_architectures_of_a_build_are_those_of_its_plan(plan, archs):
    assert archs_of(plan) == archs


def test_the_texts_of_the_license_are_in_the_wheel_and_in_its_metadata():
    with zipfile.ZipFile(BytesIO(finished().content)) as archive:
        (name,) = [each for each in archive.namelist() if "/licenses/" in each]
        info = name.partition("/")[0]
        assert (name, archive.read(name)) == (f"{info}/licenses/NOTICE", b"Ours.")
        assert archive.getinfo(name).external_attr >> 16 & 0o777 == 0o644
        assert "\nLicense-File: NOTICE\n" in archive.read(f"{info}/METADATA").decode()
