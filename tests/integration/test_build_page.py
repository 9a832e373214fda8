"""The page of a build in a real browser: on a phone and at a desk, light and dark."""

import os
from pathlib import Path

import pytest

from builder.engine.outcome import CellOutcome
from builder.make.job import CompileError
from builder.matrix.variant import Variant
from tests import wheels
from tests.integration import browsing
from tests.integration.browsing import opened
from tests.report.recorded import CELLS, CPU, CUDA, HIT, built, done, file, line, page, step

browser = browsing.browser
SHOTS = [(width, scheme) for width in (360, 1400) for scheme in ("light", "dark")]
pytestmark = pytest.mark.slow
SOURCES = ("attention_forward_with_a_long_name", "attention", "softmax", "rope", "norm", "gemm", "cast", "bind")


def files(folder, *, seconds):
    """Return the files of a cell that two compilers made, one of them from a cache, and the library."""
    objects = [
        file(f"CMakeFiles/k.dir/csrc/{folder}/{name}.cu.o", number // 2 * seconds, (number // 2 + 1) * seconds - 0.2)
        for number, name in enumerate(SOURCES)
    ]
    objects[3] |= {"cache": "store", "writer": "ci-7", "saved": 4.0, "end": objects[3]["start"] + 0.4}
    return *objects, file("lib.so", 4 * seconds, 4 * seconds + 0.8)


@pytest.fixture(params=["built", "failed"])
def address(request, monkeypatch, tmp_path):
    """Return the address of the page of a build of two cells and a hit; or of one of which a cell failed, too."""
    events = [
        step(0, CPU, "preparing"),
        step(0, CUDA, "preparing"),
        step(0, HIT, "preparing"),
        done(0.2, HIT),
        step(1, CUDA, "waiting for memory and cores"),
        line(1.5, CPU, "*** Configuring CMake..."),
        line(4, CPU, "[1/9] a"),
        line(12, CPU, "auditing"),
        done(14, CPU),
        step(14, CUDA, "compiling"),
        line(15, CUDA, "*** Configuring CMake..."),
        line(20, CUDA, "FAILED: [code=1] CMakeFiles/k.dir/csrc/cuda/rope.cu.o"),
        line(20, CUDA, "[1/9] a"),
        done(44, CUDA),
    ]
    wheel = wheels.make(tmp_path, "relu", Variant.parse(CPU))
    outcomes = [
        built(CPU, *files("cpu", seconds=2), reason="csrc/norm.cu changed", seconds=14.0, wheel=wheel),
        CellOutcome(cell=CELLS[HIT], status="hit", reason="nothing changed", seconds=0.2),
    ]
    if request.param == "built":
        outcomes.append(built(CUDA, *files("cuda", seconds=5), reason="first build", seconds=44.0))
    else:
        said = "/tmp/builder/src/csrc/rope.h(12): error: expected a ;\n  float4 x\n         ^"
        error = CompileError(f"{CUDA}: the build failed\n{said}", help="the whole log: /store/logs/relu.log")
        outcomes.append(CellOutcome(cell=CELLS[CUDA], status="failed", reason=error.message, error=error, seconds=44.0))
    target = tmp_path / f"{request.param}.html"
    target.write_text(page(monkeypatch, events, outcomes, look=lambda: 3 << 30), encoding="utf-8")
    return target.as_uri()


@pytest.mark.parametrize(("width", "scheme"), SHOTS)
def test_the_page_fits_and_has_its_style(browser, address, width, scheme):
    page = opened(browser, address, alone=True, width=width, scheme=scheme, java_script_enabled=False)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator(".lane").first.bounding_box()["height"] == 18  # its style is allowed by its own policy
    assert page.get_by_role("img", name="memory over time: 3.0 GiB at most").is_visible()
    assert page.locator("#sizes").get_by_text("relu/metadata.json").is_visible()
    assert page.locator(".lane .file.cached").count() >= 1
    assert page.locator(".lane .file.critical").count() >= 1
    if folder := os.environ.get("BUILDER_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{Path(address).stem}-{width}-{scheme}.png", full_page=True)


@pytest.mark.parametrize("width", [360, 1400])
def test_a_bar_stands_under_its_time_and_says_what_it_is(browser, address, width):
    page = opened(browser, address, alone=True, width=width)
    lane = page.locator(".lane").first.bounding_box()
    at_10 = page.locator(".axis line").nth(1).bounding_box()["x"]
    assert page.locator(".axis text").nth(1).text_content() == "10 s"
    assert at_10 == pytest.approx(lane["x"] + lane["width"] * 10 / 44, abs=2)
    bar = page.locator(".lane .file.critical rect").first
    assert bar.bounding_box()["x"] == pytest.approx(lane["x"] + lane["width"] * 2.2 / 44, abs=3)
    assert page.locator(".lane .file.critical title").first.text_content().endswith("; on the critical path")


def test_the_first_error_is_above_all_else(browser, address):
    page = opened(browser, address, alone=True, width=1400)
    error = page.locator("#error")
    assert error.count() == (1 if "failed" in address else 0)
    if error.count():
        assert "In csrc/rope.h, line 12, when csrc/cuda/rope.cu was made." in error.inner_text()
        assert error.bounding_box()["y"] < page.locator("#timeline").bounding_box()["y"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(browser, address, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = opened(browser, address, alone=True, width=1400, scheme=scheme, bypass_csp=True)
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
