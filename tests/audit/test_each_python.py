"""Wheels for one Python, which may use all of its C API."""

import pytest

from builder.matrix.variant import Variant, extension_suffix
from tests.given import audits

FULL = r"""
extern "C" void *PyFrame_GetBack(void *);
__attribute__((visibility("default"))) void *uses_all(void) { return PyFrame_GetBack(nullptr); }
"""
PLATFORM = "manylinux_2_28_x86_64"
NAME = "torch213-cxx11-cpu-x86_64-linux"

pytestmark = pytest.mark.cmake


@pytest.fixture
def findings(compiler, make_wheel):
    """Audit a wheel whose library uses all of the C API; return what breaks a rule."""

    def run(tag, *, suffix=None, promised=None, label="torch213.cxx11.cpu", requires="torch==2.13.*"):
        library = compiler.library(FULL)
        own = {"library": library} if suffix is None else {"package": {f"_demo_cpu_0000001{suffix}": library}}
        path = make_wheel(**own, tag=f"{tag}-{PLATFORM}", label=label, requires=requires)
        return audits.findings(path, variant=None if promised is None else Variant.parse(promised))

    return run


@pytest.mark.parametrize("promised", [None, f"{NAME}-cp312"])
def test_a_library_for_one_python_may_use_all_of_its_api(findings, promised):
    suffix = extension_suffix("cp312", PLATFORM)
    assert suffix == ".cpython-312-x86_64-linux-gnu.so"
    assert findings("cp312-cp312", suffix=suffix, promised=promised) == set()


def test_a_library_for_every_python_may_not(findings):
    assert ("abi3", "PyFrame_GetBack") in findings("cp39-abi3")


def test_a_library_of_another_python_than_the_tag_is_found(findings):
    suffix = extension_suffix("cp311", PLATFORM)
    expected = f"demo/_demo_cpu_0000001{extension_suffix('cp312', PLATFORM)}"
    assert ("layout", expected) in findings("cp312-cp312", suffix=suffix)


@pytest.mark.parametrize("promised", [NAME, f"{NAME}-cp311"], ids=["for every Python", "for another"])
def test_a_tag_that_was_not_promised_is_found(findings, promised):
    found = findings("cp312-cp312", suffix=extension_suffix("cp312", PLATFORM), promised=promised)
    assert found == {("abi3", "cp312")}


def test_a_tag_for_every_python_in_place_of_the_promised_one_is_found(findings):
    assert ("abi3", "python") in findings("cp39-abi3", promised=f"{NAME}-cp312")


def test_a_wheel_of_the_stable_abi_is_never_for_one_python(findings):
    suffix = extension_suffix("cp312", PLATFORM)
    found = findings("cp312-cp312", suffix=suffix, label="torch.stable210.cpu", requires="torch>=2.10")
    assert ("layout", f"cp312-cp312-{PLATFORM}") in found


@pytest.mark.parametrize(
    ("platform", "suffix"),
    [
        ("macosx_14_0_arm64", ".cpython-310-darwin.so"),
        ("manylinux_2_28_aarch64", ".cpython-310-aarch64-linux-gnu.so"),
        ("musllinux_1_2_x86_64", ".cpython-310-x86_64-linux-musl.so"),
    ],
)
def test_a_module_has_the_name_that_its_python_looks_for(platform, suffix):
    assert extension_suffix("cp310", platform) == suffix
