"""The page of a plan in a real browser: on a phone and at a desk, light and dark, without a script."""

import pytest

from builder import matrix
from builder.ci.plan import make
from builder.ci.plan.text import page as page_of
from builder.kernel import load
from builder.matrix.selection import Scope
from tests.integration import browsing
from tests.integration.browsing import opened
from tests.paths import ROOT

browser = browsing.browser
SHOTS = [(width, scheme) for width in (360, 768, 1400) for scheme in ("light", "dark")]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """Return the address of the page of two kernels, with every row of the matrix."""
    plans = [
        make(load(ROOT / "examples" / name), matrix.rows(), Scope(sets=("release", "preview", "legacy")))
        for name in ("relu", "rmsnorm-stable")
    ]
    file = tmp_path_factory.mktemp("plan") / "plan.html"
    file.write_text(page_of(plans, None, {"gone": "no cell is selected"}), encoding="utf-8")
    return file.as_uri()


def unfolded(browser, address, **more):
    page = opened(browser, address, alone=True, **more)
    for summary in page.locator("summary").all():
        summary.click()
    return page


@pytest.mark.parametrize(("width", "scheme"), SHOTS)
def test_the_page_fits_and_has_its_style(browser, plan, width, scheme):
    page = unfolded(browser, plan, width=width, scheme=scheme, java_script_enabled=False)
    assert page.locator("main").bounding_box()["width"] <= width
    assert page.locator("body").bounding_box()["width"] <= width  # its style is allowed by its own policy
    assert page.locator("thead").first.is_visible() == (width > 768)
    assert page.get_by_text("one stable ABI wheel serves every torch").first.is_visible()


@pytest.mark.parametrize(("width", "scheme"), SHOTS)
def test_axe_finds_no_violation(browser, plan, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = unfolded(browser, plan, width=width, scheme=scheme, bypass_csp=True)
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []
