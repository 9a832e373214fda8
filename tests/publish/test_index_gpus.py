"""Which GPUs a page says that a wheel runs on, and by which of them the front page is filtered."""

import json
import re
from html import unescape

import pytest

from builder.audit import gpus as audited
from builder.audit.gpus import named
from builder.matrix.variant import Variant
from builder.publish import index
from builder.publish.index import people
from builder.publish.index.table import DeviceCode
from builder.wheel import kernel_wheel
from builder.wheel.archive import Bytes
from tests.given.device_code import ARCH_SPECIFIC, FAMILY_SPECIFIC, bundle, fatbin, image
from tests.wheels import library, make, package

CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
ROCM = Variant.parse("torch213-cxx11-rocm72-x86_64-linux")
CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
TRITON = Variant.parse("torch-cuda")
VOLTA_TURING_AND_ORIN = "V100, Titan V (7.0); T4, GeForce RTX 20, Quadro RTX (7.5); Jetson Orin (8.7)"
AMPERE_AND_ADA = "A10, A40, RTX A6000, GeForce RTX 30 (8.6); L4, L40S, RTX 6000 Ada, GeForce RTX 40 (8.9)"
OTHERS_SINCE_HOPPER = (
    "H100, H200, GH200 (9.0); Jetson Thor (11.0); RTX PRO 6000 Blackwell, GeForce RTX 50 (12.0); "
    "GB10 (DGX Spark) (12.1)"
)
VERSION_OF_PTX = slice(16 + 24, 16 + 28)
"""Where a fat binary says the version of its first image, after its own header."""


@pytest.fixture
def wheel(tmp_path):
    """Make a wheel whose library has some device code."""

    def wheel(*code, name="relu", variant=CUDA):
        files = package(name, variant, more={"_relu.abi3.so": library(*code)})
        return kernel_wheel.read(make(tmp_path, name, variant, files=files))

    return wheel


def shown(page):
    """Return what a page of one wheel says of GPUs."""
    (text,) = re.findall(r"<dt>GPUs</dt><dd>(.*?)</dd>", page)
    return [unescape(line) for line in re.findall(r"<li>(.*?)</li>", text)] or text


def page_of(*wheels, path="kernels/relu/index.html"):
    return index.build(wheels)[path].content.decode()


def cards_of(front):
    """Return the GPUs that each kernel of a front page is filtered by."""
    return {name: given.split() for given, name in re.findall(r'data-gpu="([^"]*)">\n<h3><a [^>]*>([^<]+)', front)}


def test_a_page_says_in_what_way_each_gpu_runs_a_wheel(wheel):
    code = bytearray(fatbin(image(1, 90), image(2, 80), image(2, 100, flags=FAMILY_SPECIFIC)))
    code[VERSION_OF_PTX] = bytes([0, 0, 9, 0])
    assert shown(page_of(wheel(bytes(code)))) == [
        "A100, A30 (8.0); B200, GB200 (10.0): machine code of its own",
        f"{AMPERE_AND_ADA}: machine code for 8.0, which it runs",
        "B300, GB300 (10.3); Rubin, Vera Rubin (10.7): machine code for 10.0f, which it runs",
        f"{OTHERS_SINCE_HOPPER}: PTX for 9.0, compiled at the first load; driver of CUDA 13.0 or newer",
        f"{VOLTA_TURING_AND_ORIN}: nothing: kernels fail with 'no kernel image is available'",
    ]


def test_a_gpu_without_code_for_some_of_a_wheel_is_not_among_those_that_run_it(wheel):
    both = wheel(fatbin(image(2, 80), image(2, 90)), fatbin(image(2, 90)))
    assert DeviceCode.of(both).running == (named("9.0"),)
    assert shown(page_of(both))[1].endswith("machine code of its own; and nothing for other kernels, which fail")


def test_it_is_what_the_audit_says(wheel):
    made = wheel(fatbin(image(2, 80), image(2, 90, flags=ARCH_SPECIFIC), image(1, 75)), fatbin(image(2, 90)))
    codes = DeviceCode.of(made).codes
    assert codes == audited.of_libraries(made.wheel, made.variant.backend)
    assert {code.gpu.backend for code in codes} == {made.variant.backend}
    hopper = next(code for code in codes if code.gpu is named("H100"))
    assert (hopper.own, hopper.text) == (("9.0", "9.0a"), "machine code for 9.0, 9.0a")


def test_a_page_of_amd_names_its_gpus(wheel):
    code = bundle(host_x86__=b"", **{"hipv4-amdgcn-amd-amdhsa__gfx942": b"co"})
    assert shown(page_of(wheel(code, variant=ROCM)))[0] == (
        "Instinct MI300X, Instinct MI325X (gfx942): machine code of its own"
    )


@pytest.mark.parametrize(
    ("variant", "content", "said"),
    [
        pytest.param(TRITON, None, "not known, as it has no device code of its own", id="Triton"),
        pytest.param(CUDA, library(b"none"), "not known, as it has no device code of its own", id="none"),
        pytest.param(CUDA, Bytes(b"no library"), "not known, as its device code cannot be read", id="damaged"),
    ],
)
def test_a_wheel_that_does_not_say_which_gpus_run_it_is_hidden_by_none_of_its_backend(tmp_path, variant, content, said):
    more = {} if content is None else {"_relu.abi3.so": content}
    made = kernel_wheel.read(make(tmp_path, "relu", variant, files=package("relu", variant, more=more)))
    assert shown(page_of(made)) == said
    (given,) = cards_of(page_of(made, path="index.html")).values()
    assert {"7.5", "9.0", "12.1"} <= set(given)
    assert "gfx942" not in given


def test_a_site_without_gpus_that_are_known_has_no_filter_by_them(tmp_path):
    made = kernel_wheel.read(make(tmp_path, "relu", CPU))
    assert "<dt>GPUs</dt>" not in page_of(made)
    assert cards_of(page_of(made, path="index.html")) == {"relu": []}
    assert 'name="gpu"' not in page_of(made, path="index.html")
    assert '[name="gpu"]' not in index.build([made])["style.css"].content.decode()


def test_kernels_are_filtered_by_the_gpus_that_run_any_wheel_of_theirs(wheel, tmp_path):
    wheels = (
        wheel(fatbin(image(2, 90))),
        wheel(bundle(**{"hipv4-amdgcn-amd-amdhsa__gfx942": b"co"}), variant=ROCM),
        wheel(fatbin(image(2, 80)), name="silu"),
        kernel_wheel.read(make(tmp_path, "norm", CPU)),
    )
    front = page_of(*wheels, path="index.html")
    assert cards_of(front) == {"norm": [], "relu": ["9.0", "gfx942"], "silu": ["8.0", "8.6", "8.9"]}
    (group,) = re.findall(r"<fieldset>\n<legend>GPU</legend>.*?</fieldset>", front, re.DOTALL)
    options = re.findall(r'<label><input type="radio" name="gpu" value="([^"]*)"[^>]*> ([^<]+)</label>', group)
    assert [value for value, _ in options] == ["", "8.0", "8.6", "8.9", "9.0", "gfx942"]
    assert dict(options)["9.0"] == "H100, H200, GH200 (9.0)"
    rule = '.chooser:has([name="gpu"][value="gfx942"]:checked) [data-gpu]:not([data-gpu~="gfx942"]) { display: none; }'
    assert rule in index.build(wheels)["style.css"].content.decode()


def test_kernels_that_are_not_on_the_front_page_are_filtered_too(tmp_path, monkeypatch):
    monkeypatch.setattr(people, "ON_FRONT", 1)
    site = index.build(kernel_wheel.read_all([make(tmp_path, name, TRITON) for name in ("relu", "silu")]))
    (listed,) = json.loads(site["kernels.json"].content)
    assert "9.0" in listed["gpus"]
    assert site["all/index.html"].content.decode().count('data-gpu="7.0 7.5 8.0') == 2
    assert 'card.dataset.gpu = kernel.gpus.join(" ");' in site["site.js"].content.decode()
