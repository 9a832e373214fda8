"""The manylinux policy that a wheel's tags promise, what breaks it, and what the audit advises."""

import pytest

from builder.audit import manylinux
from builder.binary.elf_symbols import Symbol
from builder.config.values import Backend
from tests.given.audits import library, subject

METADATA = "demo-1.0.0.dist-info/METADATA"


def found(*, platform="manylinux_2_28_x86_64", glibc=None, more=(), requires="", about=(), **fields):
    """Return the findings of a wheel with one library of these `fields`, or more; `about` says more of the wheel."""
    if glibc is not None:
        version = f"GLIBC_{glibc}"
        symbol = Symbol(name="f", defined=False, binding="global", version=version, library="libc.so.6")
        fields |= {"undefined": (symbol,), "versions": (("libc.so.6", version),)}
    wheel = subject(
        library(**fields),
        *more,
        tags=tuple(f"cp39-abi3-{each}" for each in platform.split(".")),
        texts={METADATA: f"Metadata-Version: 2.4\nRequires-Dist: {requires}\n"},
        **dict(about),
    )
    return list(manylinux.check(wheel))


@pytest.mark.parametrize("platform", ["linux_x86_64", "manylinux_2_28_riscv64", "manylinux_9_9_x86_64", "any"])
@pytest.mark.parametrize(
    ("glibc", "advice"),
    [
        pytest.param("2.17", "allow: manylinux_2_17_x86_64", id="a policy"),
        pytest.param("2.99", "allow: none; f@GLIBC_2.99 keeps it from every policy", id="none"),
    ],
)
def test_a_tag_without_a_policy_is_found_with_the_one_that_the_symbols_allow(platform, glibc, advice):
    (finding,) = found(platform=platform, glibc=glibc)
    assert (finding.file, finding.symbol) == ("demo-1.0.0.dist-info/WHEEL", platform)
    assert advice in finding.remedy


def test_three_of_many_symbols_are_named_that_keep_a_library_from_every_policy():
    names = [Symbol(name=name, defined=False, binding="global", version="GLIBC_2.99", library="l") for name in "abcd"]
    (finding,) = found(platform="linux_x86_64", undefined=tuple(names), versions=(("l", "GLIBC_2.99"),))
    assert finding.remedy.endswith("none; a@GLIBC_2.99, b@GLIBC_2.99, c@GLIBC_2.99 keeps it from every policy")


def test_a_library_of_a_machine_without_policies_is_named_by_its_machine():
    (finding,) = found(platform="linux_riscv64", machine="riscv64")
    assert "allow: none; riscv64 keeps it" in finding.remedy


@pytest.mark.parametrize(
    ("platform", "glibc", "remedy"),
    [
        ("manylinux_2_28_x86_64", "2.28", None),
        ("manylinux_2_28_x86_64", "2.29", "tag the wheel manylinux_2_31_x86_64"),
        ("manylinux_2_34_x86_64.manylinux_2_28_x86_64", "2.29", "tag the wheel manylinux_2_31_x86_64"),
        ("manylinux2014_x86_64", "2.17", None),
        ("manylinux2014_x86_64", "2.18", "tag the wheel manylinux_2_24_x86_64"),
        ("manylinux_2_28_x86_64", "2.99", "build on the oldest system"),
    ],
)
def test_a_symbol_that_the_lowest_promised_policy_lacks_is_found(platform, glibc, remedy):
    findings = found(platform=platform, glibc=glibc)
    assert [finding.symbol for finding in findings] == ([] if remedy is None else [f"f@GLIBC_{glibc}"])
    assert all(remedy in finding.remedy for finding in findings)


def test_a_library_of_another_machine_is_found_and_judged_no_further():
    (finding,) = found(machine="aarch64", glibc="2.99")
    assert finding.symbol == "aarch64"
    (finding,) = found(format="Mach-O", glibc="2.99")
    assert "Mach-O" in finding.why


@pytest.mark.parametrize(
    ("needed", "files", "why"),
    [
        pytest.param("libc.so.6", (), None, id="of the policy"),
        pytest.param("ld-linux-x86-64.so.2", (), None, id="the loader"),
        pytest.param("libtorch_cpu.so", (), None, id="of torch"),
        pytest.param("libfoo.so.1", (), "neither manylinux_2_28 nor what the framework has", id="of nobody"),
        pytest.param("libfoo.so.1", ("demo/libs/libfoo.so.1",), "its own copy", id="of the wheel"),
    ],
)
def test_a_library_that_is_not_there_where_the_wheel_is_used_is_found(needed, files, why):
    findings = found(needed=(needed,), about={"files": files})
    assert [finding.symbol for finding in findings] == ([] if why is None else [needed])
    assert all(why in finding.why for finding in findings)


@pytest.mark.parametrize(
    ("needed", "requires", "found_"),
    [
        ("libnvjpeg.so.13", "nvidia-nvjpeg>=13,<14", []),
        ("libnvjpeg.so.12", "nvidia_nvjpeg-cu12", []),
        ("libnvjpeg.so.13", "torch==2.13.*", ["libnvjpeg.so.13"]),
        ("libnvjpeg2.so.13", "nvidia-nvjpeg>=13,<14", ["libnvjpeg2.so.13"]),
    ],
)
def test_a_library_of_a_package_that_the_wheel_requires_is_there(needed, requires, found_):
    findings = found(needed=(needed,), requires=requires, about={"backend": Backend.CUDA})
    assert [finding.symbol for finding in findings] == found_


def test_a_wheel_that_does_not_say_what_it_is_has_no_library_of_torch():
    (finding,) = found(needed=("libtorch_cpu.so",), about={"facts": None})
    assert finding.symbol == "libtorch_cpu.so"


@pytest.mark.parametrize("entry", ["$ORIGIN", "${ORIGIN}", "$ORIGIN/lib", "$ORIGIN/a..b"])
def test_a_search_path_inside_the_wheel_is_right(entry):
    assert found(rpath=(entry,)) == []


@pytest.mark.parametrize("entry", ["", "/usr/lib", "lib", "$ORIGINAL", "$ORIGIN/../lib", "x$ORIGIN"])
def test_a_search_path_out_of_the_wheel_is_found(entry):
    (finding,) = found(rpath=(entry, "$ORIGIN"))
    assert finding.symbol == (entry or "(empty)")


def test_code_that_is_written_to_and_a_stack_that_is_run_are_found():
    assert [finding.symbol for finding in found(textrel=True)] == ["DT_TEXTREL"]
    assert [finding.symbol for finding in found(executable_stack=True)] == ["PT_GNU_STACK"]


def test_every_library_is_judged_whatever_the_one_before_it():
    more = (library("demo/b.so", textrel=True),)
    assert [finding.file for finding in found(textrel=True, more=more)] == ["demo/a.so", "demo/b.so"]
    findings = found(platform="any", textrel=True, more=more)
    assert [finding.file for finding in findings][1:] == ["demo/a.so", "demo/b.so"]


def test_what_is_for_macos_alone_promises_no_manylinux():
    assert found(platform="macosx_15_0_arm64", format="Mach-O", rpath=("/usr/lib",)) == []
    assert found(platform="macosx_15_0_arm64.any") != []
