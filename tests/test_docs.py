"""The documentation: generated pages are up to date, and the site builds without a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_page_of_the_command_line_is_what_the_commands_say():
    # In a process of its own: click keeps the help option of a command that was called.
    command = [sys.executable, "-m", "builder.cli.reference"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (ROOT / "docs/cli.md").read_text(encoding="utf-8") == done.stdout


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("mkdocs")
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
    styles = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.css"))
    assert not re.search(r"url\(.?(https?:)?//|@import .?(https?:)?//", styles)


def test_every_data_file_is_on_its_page_with_files_that_exist():
    text = (ROOT / "docs/data.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert sorted(row.split("`")[1] for row in rows) == sorted(path.name for path in (ROOT / "builder/data").iterdir())
    named = {word for row in rows for word in row.split("`")[3::2] if "/" in word}
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []
