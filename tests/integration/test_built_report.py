"""The report of a real build, opened in a real browser without JavaScript."""

import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration import browsing

browser = browsing.browser
ROOT = Path(__file__).parent.parent.parent
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="a cell of x86_64-linux"),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build once, once more, and once with an error; return the folder with the reports."""
    folder = tmp_path_factory.mktemp("reports")
    tiny = Path(shutil.copytree(ROOT / "tests/data/kernels/tiny", folder / "tiny"))

    def build(report):
        command = ["build", tiny, "--no-isolation", "--report", report]
        return subprocess.run(
            [sys.executable, "-m", "builder", *map(str, command)],
            env={**os.environ, "BUILDER_STORE": str(folder / "store"), "PYTHONPATH": str(ROOT)},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )

    for name in ("first.html", "second.html"):
        done = build(folder / "reports" / name)
        assert done.returncode == 0, done.stderr
    (tiny / "csrc/twice.cpp").write_text("#error <wrong>\n")
    assert build(folder / "reports/failed.html").returncode == 4
    (folder / "file").touch()
    done = build(folder / "file/report.html")
    assert done.returncode == 4
    assert "cannot write the report" in done.stderr
    assert "Traceback" not in done.stderr
    return folder / "reports"


@pytest.fixture
def opened(browser, built):
    def open_(name, width=360):
        page = browser.new_context(viewport={"width": width, "height": 800}, java_script_enabled=False).new_page()
        page.goto((built / name).as_uri())
        return page

    return open_


@pytest.mark.parametrize("width", [360, 1280], ids=["phone", "desktop"])
def test_a_person_sees_what_took_the_time(opened, width):
    page = opened("first.html", width)
    assert page.get_by_role("heading", name=VARIANT).is_visible()
    drawing = page.get_by_role("img", name=f"timeline of {VARIANT}")
    assert drawing.bounding_box()["width"] <= width
    steps = drawing.locator(".step").all()
    assert len(steps) >= 5
    for earlier, later in itertools.pairwise(steps):
        assert later.bounding_box()["x"] >= earlier.bounding_box()["x"]
    assert page.locator(".lane .file").count() >= 3
    assert page.locator(".lane .file.critical").count() >= 2
    assert page.get_by_role("img", name="memory over time").is_visible()
    assert "twice.cpp" in page.locator("#slowest").inner_text()
    assert page.get_by_text("needs a machine of aarch64-linux").is_visible()
    sizes = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert sizes[0] <= sizes[1], "the page is wider than the screen"
    if folder := os.environ.get("BUILDER_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"report-{width}.png", full_page=True)


def test_a_hit_and_a_failure_are_told_apart(opened):
    assert "0 built, 1 from the store" in opened("second.html").inner_text("body")
    page = opened("failed.html")
    assert "failed in" in page.inner_text("body")
    assert page.locator(".lane .file.cached").count() >= 1  # what was made before is in the timeline
    first = page.locator("#error").inner_text()
    assert "#error <wrong>" in first
    assert "In csrc/twice.cpp, line 1." in first
    assert VARIANT in first
