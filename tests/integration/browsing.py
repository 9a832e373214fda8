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
