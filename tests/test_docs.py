"""The documentation: generated pages are up to date, and the site builds without a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from builder import pins
from builder.config import Framework

ROOT = Path(__file__).parent.parent


def test_the_page_of_the_command_line_is_what_the_commands_say():
    # In a process of its own: click keeps the help option of a command that was called.
    command = [sys.executable, "-m", "builder.cli.reference"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == done.stdout


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("material")
    # In a process of its own: a proxy that is not there stands for a machine without a network.
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    env = {"PATH": "/usr/bin:/bin", "HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {
        path.relative_to(tmp_path).as_posix(): path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.html")
    }
    assert {"index.html", "tutorial.html", "cli.html", "errors/index.html", "howto/stable-abi.html"} <= pages.keys()
    for name, text in pages.items():
        assert not re.search(r"<(script|link|img)[^>]+(src|href)=.(https?:)?//", text), name
    assert (tmp_path / "search/search_index.js").read_text(encoding="utf-8").startswith("var __index = ")
    styles = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.css"))
    assert not re.search(r"url\(.?(https?:)?//|@import .?(https?:)?//", styles)


OUTSIDE = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "benchmarks/*.md", "examples/**/*.md", "docs/index.md")
    for path in ROOT.glob(pattern)
)
"""Pages that are read in the repository; mkdocs checks the links of all in docs/, but no pictures in HTML."""


@pytest.mark.parametrize("name", OUTSIDE)
def test_the_links_and_pictures_of_a_page_outside_the_site_lead_somewhere(name):
    text = re.sub(r"^```.*?^```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(([^)\s]+)\)|\bsrc=\"([^\"]+)\"", text)
    for target in map("".join, targets):
        if re.match(r"https?:|mailto:", target):
            continue
        file, _, anchor = target.partition("#")
        found = ROOT / name if file == "" else (ROOT / name).parent / file
        assert found.exists(), target
        if anchor:
            heads = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}, target


def test_every_data_file_is_on_its_page_with_files_that_exist():
    text = (ROOT / "docs/data.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert sorted(row.split("`")[1] for row in rows) == sorted(path.name for path in (ROOT / "builder/data").iterdir())
    named = {word for row in rows for word in row.split("`")[3::2] if "/" in word}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_readme_asks_for_one_python_and_it_has_torch_for_the_cpu():
    asked = set(re.findall(r"Python (3\.\d+) or newer", (ROOT / "README.md").read_text(encoding="utf-8")))
    assert len(asked) == 1
    (version,) = asked
    assert f"Python {version} or newer" in (ROOT / "Makefile").read_text(encoding="utf-8")
    needed = pins.Requirement(
        framework=Framework.TORCH,
        version="2.13",
        compute="cpu",
        python=f"cp{version.replace('.', '')}",
        system="x86_64-linux",
    )
    assert pins.load().environment(needed).wheels


def test_a_bare_root_gets_the_packages_that_the_readme_names():
    """`.ci/bare/make` takes them from this line."""
    lines = re.findall(
        r"^apt-get install (python3 .*\S) *# ", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert lines == ["python3 python3-venv g++ make git"]
