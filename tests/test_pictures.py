"""The pictures of the terminal show what the commands write today, and are complete in themselves."""

import platform
import re
import sys
from xml.etree import ElementTree as ET

import pytest

from tests.paths import ROOT
from website import terminal

SVG = "{http://www.w3.org/2000/svg}"
WIDE = 12.2
"""The width of a character, as rich draws it."""


COMMITTED = {name: (ROOT / f"docs/images/{name}.svg").read_text(encoding="utf-8") for name in terminal.COMMANDS}


def lines(svg):
    """Return the text of a picture, line by line, each word at its column."""
    rows = {}
    for text in ET.fromstring(svg).iter(f"{SVG}text"):
        if "y" in text.attrib and text.get("clip-path"):
            rows.setdefault(float(text.get("y")), []).append((round(float(text.get("x")) / WIDE), text.text))
    shown = []
    for _, words in sorted(rows.items()):
        line = ""
        for column, word in sorted(words):
            line = line.ljust(column) + word.replace("\xa0", " ")
        shown.append(line.rstrip())
    return [line for line in shown if line]


@pytest.mark.parametrize(
    ("name", "at", "line"),
    [
        pytest.param("plan", 0, "$ builder matrix examples/relu", id="plan"),
        pytest.param(
            "build",
            -1,
            "dist/relu-1.0.0+torch213.cxx11.cpu-py3-none-manylinux_2_28_x86_64.whl",
            id="build",
            marks=[
                pytest.mark.torch,
                pytest.mark.cmake,
                pytest.mark.network,
                pytest.mark.slow,
                pytest.mark.skipif(
                    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="drawn on Linux of x86_64"
                ),
            ],
        ),
    ],
)
def test_the_picture_is_that_of_today(name, at, line):
    found = lines(COMMITTED[name])
    assert found[at] == line
    command, width = terminal.COMMANDS[name]
    drawn = terminal.picture(command, terminal.seen(terminal.run(command, width), width), width)
    assert found == lines(drawn), f"draw it anew: python website/terminal.py {name}"


@pytest.mark.parametrize("name", terminal.COMMANDS)
def test_a_picture_fetches_nothing_and_has_nothing_of_the_machine_that_drew_it(name):
    text = COMMITTED[name]
    assert re.findall(r"https?:[^\"]*", text) == [SVG.strip("{}")]
    assert "url(" not in text.replace("url(#", "")
    assert not re.search(r"/tmp|/home|/root|\d s\b", " ".join(lines(text)))


def test_of_what_was_written_the_lines_stay_that_a_terminal_shows_in_the_end():
    written = (
        "\x1b[?25lcell  preparing  0 s\r\x1b[2Kcell  loading  7 s\r\x1b[2K"
        "cell: built in 7.3 s (first build of this cell) -> a.whl\r\ncell  loading  7 s\r\x1b[2K\r\n"
        "\x1b[?25h\r\x1b[1A\x1b[2K1 \x1b[1mbuilt\x1b[0m\r\n"
    )
    found = terminal.seen(written, 40)
    assert [line.plain for line in found] == ["cell: built (first build of this cell) -", "> a.whl", "1 built"]
    assert "bold" in str(found[-1].spans)
