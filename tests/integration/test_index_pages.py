"""The pages of an index in a real browser: with and without scripts, on a phone and at a desk, light and dark."""

import os
from pathlib import Path

import pytest

from builder.cli import run
from builder.config import Version
from builder.matrix.variant import Variant
from builder.publish.index.table import torch_index
from tests.integration import browsing
from tests.integration.browsing import opened
from tests.integration.test_index import served
from tests.wheels import make

browser = browsing.browser

NAMES = [
    "torch212-cxx11-cpu-x86_64-linux",
    "torch213-cxx11-cpu-x86_64-linux",
    "torch213-cxx11-cpu-aarch64-linux",
    "torch213-cxx11-cu130-x86_64-linux",
    "torch213-metal-aarch64-darwin",
]
WIDTHS = (360, 768, 1400)
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    dist = folder / "dist"
    dist.mkdir()
    for name in NAMES:
        for version in ("1.0.0", "0.9.0"):
            requires = [f"torch=={Variant.parse(name).version}.*", "einops"]
            make(dist, "relu", Variant.parse(name), version=version, requires=requires, content='"""ReLU."""\n')
    stable = Variant.parse("torch-stable-abi210-cu130-x86_64-linux")
    make(dist, "rms-norm", stable, content=f'"""Norm. {SCRIPT}"""\n', requires=["torch", SCRIPT])
    assert run(["index", str(dist), "--output", str(folder / "site")]) == 0
    return folder / "site"


def choose(page, name, value):
    page.locator(f"input[name={name}][value='{value}']").check()


def line(page):
    (shown,) = [each for each in page.locator(".answer pre").all() if each.is_visible()]
    return shown.locator("code").inner_text().strip()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_person_finds_the_line_and_the_wheel_without_a_script(browser, site, width):
    with served(site) as (address, _):
        page = opened(browser, address, width=width, java_script_enabled=False)
        page.get_by_role("link", name="relu", exact=True).click()
        assert line(page).splitlines() == [
            "pip install 'torch==2.13.*'",
            "pip install einops",
            "pip install --index-url URL/for/torch213-cu130/simple/ relu",
        ]
        choose(page, "compute", "cpu")
        choose(page, "torch", "torch212")
        choose(page, "installer", "uv")
        index = torch_index(Version("2.12"), ("cpu", "x86_64-linux"))
        assert line(page) == f"uv pip install --index URL/for/torch212-cpu/simple/ --index {index} 'torch==2.12.*' relu"
        choose(page, "system", "aarch64-linux")
        (lack,) = [each for each in page.locator(".lack").all() if each.is_visible()]
        assert lack.locator("strong").inner_text() == (
            "There is no wheel for torch 2.12 with CPU on Linux ARM64: it was not built."
        )
        page.locator("tr", has_text="Metal").locator("td a").first.click()
        place = page.locator("dl:target")
        assert place.is_visible(), "the link of the matrix opens the wheel"
        with page.expect_download() as download:
            place.get_by_role("link", name="relu-1.0.0").click()
        assert download.value.suggested_filename.endswith("-macosx_15_0_arm64.whl")
        while (closed := page.locator("details:not([open]) > summary")).count() > 0:
            closed.first.click()
        assert page.locator("body").bounding_box()["width"] <= width, "the page is wider than the screen"
        assert page.locator("tbody th").first.bounding_box()["width"] > 80, "a column of letters"
        assert page.locator("summary").first.bounding_box()["height"] >= 24, "too small for a finger"
        if folder := os.environ.get("BUILDER_SCREENSHOTS"):
            page.screenshot(path=Path(folder) / f"index-{width}.png", full_page=True)


def test_the_line_names_the_torch_that_was_chosen_where_one_wheel_serves_several(browser, site):
    with served(site) as (address, _):
        page = opened(browser, f"{address}/kernels/rms-norm/")
        for value in ("torch213", "torch214"):
            choose(page, "torch", value)
            assert line(page).endswith(f"pip install --index-url {address}/for/{value}-cu130/simple/ rms-norm")


def test_the_chooser_is_used_with_the_keyboard_alone(browser, site):
    with served(site) as (address, _):
        page = opened(browser, f"{address}/kernels/relu/", java_script_enabled=False)
        page.locator("input[name=compute]:checked").focus()
        page.keyboard.press("ArrowUp")
        assert "torch213-cpu" in line(page)
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        assert line(page).startswith("uv pip install")


def test_cards_are_picked_by_backend_without_a_script_and_by_a_search_with_one(browser, site):
    with served(site) as (address, _):
        page = opened(browser, address, java_script_enabled=False)
        assert not page.locator("#search").is_visible()
        choose(page, "backend", "metal")
        assert [each.inner_text() for each in page.locator(".card h3").all() if each.is_visible()] == ["relu"]
        page = opened(browser, address)
        page.get_by_label("Search").fill("norm")
        assert page.locator("#none").inner_text() == "1 shown."
        assert [each.inner_text() for each in page.locator(".card h3").all() if each.is_visible()] == ["rms-norm"]


def test_every_kernel_of_many_is_found_by_the_search_and_without_it(browser, tmp_path):
    (tmp_path / "dist").mkdir()
    for number in range(103):
        make(tmp_path / "dist", f"kernel-{number:03}", Variant.parse("torch-cpu"), content=f'"""Does {number}."""\n')
    make(tmp_path / "dist", "z-last", Variant.parse("torch-rocm"), content=f'"""{SCRIPT}"""\n')
    assert run(["index", str(tmp_path / "dist"), "--output", str(tmp_path / "site")]) == 0
    with served(tmp_path / "site") as (address, requests):
        page = opened(browser, address)
        assert not any("kernels.json" in path for path in requests)
        page.get_by_label("Search").fill("does 102")
        page.locator("#none", has_text="1 shown.").wait_for()
        page.get_by_role("link", name="kernel-102").click()
        assert page.get_by_role("heading", name="kernel-102", exact=True).is_visible()
        for name, value in (("backend", "rocm"), ("gpu", "gfx942")):
            page = opened(browser, address)
            choose(page, name, value)
            page.locator("#none", has_text="1 shown.").wait_for()
        assert page.locator(".card", has_text="z-last").locator(".summary").inner_text() == SCRIPT
        page = opened(browser, address)
        page.get_by_label("Search").fill("mi300x")
        page.locator("#none", has_text="1 shown.").wait_for()
        page = opened(browser, address, java_script_enabled=False)
        page.get_by_role("link", name="all 104 on one page").click()
        choose(page, "gpu", "gfx942")
        assert [each.inner_text() for each in page.locator(".card a").all() if each.is_visible()] == ["z-last"]


def test_a_site_is_read_from_a_disk_too(browser, site):
    page = opened(browser, (site / "kernels/relu/index.html").as_uri())
    assert line(page).endswith("URL/for/torch213-cu130/simple/ relu")
    assert page.locator(".address-note").is_visible()


def test_pages_load_nothing_from_elsewhere_and_run_nothing_that_a_wheel_says(browser, site):
    said, asked = [], []
    with served(site) as (address, _):
        page = browser.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        for path in ("", "kernels/rms-norm/", "kernels/relu/"):
            page.goto(f"{address}/{path}")
    assert said == []
    assert {url.startswith(f"{address}/") for url in asked} == {True}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(browser, site, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    with served(site) as (address, _):
        for path in ("", "kernels/relu/", "kernels/rms-norm/"):
            page = opened(browser, f"{address}/{path}", width=width, scheme=scheme, bypass_csp=True)
            for summary in page.locator("details > summary").all()[:3]:
                summary.click()
            found = axe.Axe().run(page).response["violations"]
            assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
