"""A real browser, for tests that look at a page as a person does."""

import shutil

import pytest

from tests import needs

CHROMIUM = next(
    (path for name in ("chromium-headless-shell", "chromium", "google-chrome") if (path := shutil.which(name))), None
)


@pytest.fixture
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip(needs.lacking("Chromium on PATH", "chromium"))
    with playwright.sync_playwright() as tools:
        found = tools.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


def opened(browser, address, *, width=1400, scheme="light", alone=False, **more):
    """Open a page; one that is `alone` fails the test where it asks for another file, or a script says something."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
    page = context.new_page()
    if alone:
        page.on("console", lambda message: pytest.fail(message.text))
        page.on("request", lambda request: request.url == address or pytest.fail(request.url))
    page.goto(address)
    return page
