"""The site of docs/ in a real browser, read from a folder and from a server, with nothing from elsewhere."""

import contextlib
import subprocess
import sys
import time

import pytest

from tests.given.servers import Folder, serving_folder
from tests.integration import browsing
from tests.paths import ROOT

browser = browsing.browser
pytestmark = pytest.mark.slow
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
"""The rules that axe checks: those of WCAG 2.1, level AA."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of the site."""
    pytest.importorskip("material")
    site = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(site)]
    subprocess.run(command, cwd=ROOT, check=True)
    return site


class SlowAndQuiet(Folder):
    def do_GET(self):  # noqa: N802  http.server has this name
        if self.path.endswith("/search_index.json"):
            time.sleep(1)  # a reader has typed by then
        super().do_GET()


@pytest.fixture(params=["read from a folder", "served"])
def site(request, folder):
    with (
        contextlib.nullcontext(folder.as_uri())
        if request.param != "served"
        else serving_folder(folder, SlowAndQuiet) as address
    ):
        yield address


@pytest.fixture
def page(browser, site):
    """Return a page which fails the test where a script of it fails, or where it asks for what is not of the site."""
    made = browser.new_context(color_scheme="dark").new_page()
    wrong = []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("requestfailed", lambda request: wrong.append(request.url))
    made.on("request", lambda request: request.url.startswith((site, "blob:")) or wrong.append(request.url))
    made.set_default_timeout(10_000)
    yield made
    assert wrong == []


@pytest.mark.parametrize("name", ["index.html", "howto/backends.html"])
def test_the_search_finds_a_page_and_leads_to_it(page, site, name):
    page.goto(f"{site}/{name}")
    page.get_by_role("textbox", name="Search").press_sequentially("B107")
    page.locator(".md-search-result__link", has_text="B107: ").click()
    page.wait_for_url(f"{site}/errors/B107.html*")


def test_the_colours_are_those_of_the_system_until_a_reader_picks_others(page, site):
    page.goto(f"{site}/index.html")
    body = page.locator("body")
    assert body.get_attribute("data-md-color-scheme") == "slate"
    page.get_by_title("Switch to light mode").click()
    assert body.get_attribute("data-md-color-scheme") == "default"
    page.wait_for_load_state("networkidle")  # the index of the search is there
    page.reload()
    assert body.get_attribute("data-md-color-scheme") == "default"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index.html", "tutorial.html", "howto/from-setup-py.html"])
def test_a_page_can_be_read_on_a_phone_and_in_either_scheme(browser, folder, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = browser.new_context(viewport={"width": 360, "height": 800}, color_scheme=scheme).new_page()
    page.goto(f"{folder.as_uri()}/{name}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    found = axe.Axe().run(page, options={"runOnly": RULES}).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


def test_the_code_of_a_page_is_highlighted(browser, folder):
    page = browser.new_page()
    page.goto(f"{folder.as_uri()}/rendered.html")
    assert page.locator(".highlight .nb", has_text="cmake_minimum_required").count() == 1


def test_a_block_is_copied_without_what_a_command_wrote(browser, folder):
    page = browser.new_page()
    page.add_init_script("document.addEventListener('copy', () => { window.copied = String(getSelection()); });")
    page.goto(f"{folder.as_uri()}/index.html")
    copy(page)
    assert page.evaluate("copied").endswith("cd my-kernel\nbuilder build")
    page.goto(f"{folder.as_uri()}/reproducibility.html")
    copy(page)
    assert page.evaluate("copied") == "builder repro --variant torch-stable-abi210-cpu-x86_64-linux"


def copy(page):
    """Press the button of the first block."""
    page.get_by_role("button", name="Copy to clipboard").first.click()
    page.wait_for_function("window.copied")
