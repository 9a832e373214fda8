"""What the page of a kernel says of two of its versions."""

import html
import re

import pytest

from builder.matrix.variant import Variant
from builder.publish import index
from builder.wheel import kernel_wheel
from builder.wheel.archive import Bytes
from tests.given.device_code import fatbin, image
from tests.wheels import library, make, package

CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
OTHER = Variant.parse("torch213-cxx11-cpu-aarch64-linux")
CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
NEWER = Variant.parse("torch215-cxx11-cu132-x86_64-linux")


def page(*wheels):
    return index.build(kernel_wheel.read_all(wheels))["kernels/relu/index.html"].content.decode()


def changes(text):
    """Return what the first list of changes says, by its heading."""
    _, _, rest = text.partition("<h3>Changes since 1.0.0</h3>")
    listed, _, _ = rest.partition("</dl>")
    pairs = re.findall(r"<dt>([a-z]+)</dt><dd>(.*?)</dd>", listed, re.DOTALL)
    return {title: html.unescape(said).split("; ") for title, said in pairs}


@pytest.fixture
def wheel(tmp_path):
    """Write a wheel of relu."""

    return lambda version, variant=CPU, **more: make(tmp_path, "relu", variant, version=version, **more)


def test_what_a_version_serves_more_or_less_is_said(wheel):
    text = page(wheel("1.0.0"), wheel("1.0.0", OTHER), wheel("1.1.0"), wheel("1.1.0", NEWER))
    found = changes(text)
    assert found["new"] == ["PyTorch 2.15", "CUDA 13.2"]
    assert found["gone"] == ["Linux ARM64"]
    assert "changed" not in found


def test_requirements_files_and_the_license_are_compared(wheel):
    more = {"old.py": Bytes(b"1\n"), "_ops_more.py": Bytes(b"ops = 1\n")}
    older = package("relu", CPU, more=more)
    newer = package("relu", CPU, content="answer = 43\n", more={"fresh.py": Bytes(b"2\n")})
    table = newer["metadata.json"].content.replace(b"Apache-2.0", b"MIT")
    newer["metadata.json"] = Bytes(table)
    one = wheel("1.0.0", files=older, requires=("torch", "einops"))
    found = changes(page(one, wheel("1.1.0", files=newer, requires=("torch", "einops>=0.8"))))
    assert found["new"] == ["requires einops>=0.8", "file fresh.py"]
    assert found["gone"] == ["requires einops", "file old.py"]
    assert found["changed"][:2] == ["license MIT, before Apache-2.0", "file __init__.py"]


def test_the_sizes_of_cells_that_both_have_are_compared(wheel):
    big = package("relu", CPU, more={"_relu.abi3.so": Bytes(bytes(range(256)) * 4096)})
    found = changes(page(wheel("1.0.0"), wheel("1.1.0", files=big), wheel("1.1.0", OTHER)))
    (said,) = found["changed"]
    assert re.fullmatch(r"size [0-9.]+ KiB, before [0-9.]+ KiB, of the wheel that both versions have", said)


def test_a_gpu_that_a_version_runs_on_besides_is_new_and_one_that_nobody_knows_of_is_not(wheel):
    one, two = (library(fatbin(*(image(2, arch) for arch in archs))) for archs in ((90,), (90, 100)))
    hopper = wheel("1.0.0", CUDA, files=package("relu", CUDA, more={"_relu.abi3.so": one}))
    both = wheel("1.1.0", CUDA, files=package("relu", CUDA, more={"_relu.abi3.so": two}))
    new = changes(page(hopper, both))["new"]
    assert "B200, GB200 (10.0)" in new
    assert not any("H100" in said for said in new)
    silent = wheel("1.0.0", CUDA, files=package("relu", CUDA))
    assert "new" not in changes(page(silent, both)) or not any(
        "10.0" in each for each in changes(page(silent, both))["new"]
    )


def test_versions_that_differ_in_nothing_say_so_and_the_first_compares_with_none(wheel):
    text = page(wheel("1.0.0"), wheel("1.1.0"))
    assert text.count("Changes since") == 1
    assert "The same platforms, requirements, Python files and sizes" in text


def test_many_files_are_counted_and_hostile_names_are_inert(wheel):
    names = ["a<b>.py", *(f"part{number:02}.py" for number in range(12))]
    files = package("relu", CPU, more={name: Bytes(b"") for name in names})
    text = page(wheel("1.0.0"), wheel("1.1.0", files=files))
    assert "a&lt;b&gt;.py" in text
    assert changes(text)["new"][-1] == "3 more files"
