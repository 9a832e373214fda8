"""The page of a build as HTML, from events and outcomes alone."""

import base64
import hashlib
import html
import re

import pytest

from builder.engine.outcome import CellOutcome
from builder.make.build_report import BuildReport
from builder.report.page import ticks
from tests.report.recorded import CELLS, CPU, CUDA, HIT, built, done, file, line, page, step

CACHED = {"cache": "redis://<c>", "writer": "ci-<7>", "saved": 9.0}
EVENTS = (
    step(0, CPU, "preparing"),
    step(0, HIT, "preparing"),
    done(0.2, HIT),
    line(1, CPU, "*** Configuring CMake..."),
    line(4, CPU, "[1/4] Building CXX object CMakeFiles/<b>.o"),
    line(7, CPU, "auditing"),
    done(10, CPU),
)
FILES = (
    file("CMakeFiles/_k_cpu_1.dir/csrc/a.cpp.o", 0, 4),
    file("CMakeFiles/<b>.o", 0.5, 2.5),
    file("cached.o", 2.5, 3.0, **CACHED),
    file("lib.so", 4, 4.5),
)


OUTCOMES = (
    built(CPU, *FILES, reason="first <build>", seconds=10.0),
    CellOutcome(cell=CELLS[HIT], status="hit", reason="nothing changed"),
    CellOutcome(cell=CELLS[CUDA], status="skipped", reason="no nvcc"),
)
BAR = re.compile(
    r'<svg class="bar (?P<class>[^"]*)" x="(?P<x>[^"]*)" width="(?P<width>[^"]*)"><title>(?P<title>[^<]*)</title>'
    r"<rect [^>]*><text [^>]*>(?P<text>[^<]*)</text></svg>"
)


@pytest.fixture
def text(monkeypatch):
    return page(monkeypatch, EVENTS, OUTCOMES)


def bars(text, kind):
    """Return the bars of a kind, each with its class, place, title and text."""
    found = [{name: html.unescape(each) for name, each in bar.groupdict().items()} for bar in BAR.finditer(text)]
    return [bar for bar in found if kind in bar["class"].split()]


def test_every_step_and_every_file_is_a_bar_with_a_title_and_a_place(text):
    assert [(bar["text"], bar["x"], bar["width"]) for bar in bars(text, "step")] == [
        ("preparing", "0.000%", "10.000%"),
        ("configuring", "10.000%", "5.000%"),
        ("compiling", "15.000%", "55.000%"),
        ("auditing", "70.000%", "30.000%"),
        ("store: preparing", "0.000%", "2.000%"),
    ]
    assert [(bar["text"], bar["x"], bar["width"]) for bar in bars(text, "file")] == [
        ("a.cpp", "15.000%", "40.000%"),
        ("lib.so", "55.000%", "5.000%"),
        ("<b>.o", "20.000%", "20.000%"),
        ("cache: cached.o", "40.000%", "5.000%"),
    ]
    assert bars(text, "made")[0]["title"].startswith(f"csrc/a.cpp: 4.0 s, from 1.5 s on; {CPU}; compiled here")


def test_what_is_from_a_cache_says_so_in_words(text):
    cached = bars(text, "cached")
    assert [bar["text"] for bar in cached] == ["store: preparing", "cache: cached.o"]
    assert "the wheel is from the store" in cached[0]["title"]
    assert f"{HIT}: from the store</p>" in text
    assert "not compiled: from redis://<c>, compiled by ci-<7> in 9.0 s" in cached[1]["title"]
    assert "2 of 3 files compiled; from caches: 1 of redis://&lt;c&gt;, which saved 9.0 s of compiling." in text


def test_the_critical_path_is_marked_said_on_each_bar_and_listed(text):
    assert [bar["text"] for bar in bars(text, "critical")] == [
        "preparing",
        "configuring",
        "auditing",
        "a.cpp",
        "lib.so",
    ]
    assert all(bar["title"].endswith("on the critical path") for bar in bars(text, "critical"))
    assert "Critical path: 9.0 s of 10.0 s" in text
    listed = re.findall(r"<li>([\d.]+ s) <code>([^<]*)</code>", text)
    names = ["preparing", "configuring", "csrc/a.cpp", "lib.so", "auditing"]
    assert listed == list(zip(["1.0 s", "0.5 s", "4.0 s", "0.5 s", "3.0 s"], names, strict=True))


def test_only_the_longest_of_a_long_path_are_listed_and_the_rest_is_counted(monkeypatch):
    files = [file(f"{number}.o", number, number + 1) for number in range(40)]
    events = [line(0, CPU, "*** Configuring CMake..."), line(2, CPU, "[1/40] x"), done(42, CPU)]
    text = page(monkeypatch, events, [built(CPU, *files)])
    assert len(re.findall(r"<li>[\d.]+ s <code>", text)) == 12
    assert "29 more, which took 29.0 s." in text


def test_every_lane_has_a_name_for_those_who_do_not_see_it(text):
    names = re.findall(r'<svg class="lane" role="img" aria-label="([^"]*)">', text)
    assert names == [
        f"timeline of {CPU}, built",
        f"timeline of {HIT}, from the store",
        "compiler 1: 2 files",
        "compiler 2: 2 files",
    ]


def test_the_slowest_file_is_named_first(text):
    assert re.findall(r'<td data-column="Seconds">([\d.]+)</td>.*?<code>([^<]*)', text)[0] == ("4.0", "csrc/a.cpp")


def test_what_was_not_built_is_there_with_its_reason(text):
    assert "1 built, 1 from the store, 1 skipped" in text
    assert "<summary>1: no nvcc</summary>" in text
    assert "memory of its largest process 300.0 MiB" in text


def test_its_policy_allows_its_own_style_and_nothing_else(text):
    content = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert not re.search(r"""\s(?:style|src|href|on\w+)=["']|https?:|url\(|@import""", text)


def test_no_text_becomes_markup(monkeypatch):
    evil = "</title></svg><script>alert(1)</script>'\"&"
    files = [file(f"{evil}.o", 0, 1), file("c.o", 0, 1, cache=evil, writer=evil, saved=1.0)]
    hostile = [
        built(CPU, *files, reason=evil, notes=(evil,)),
        CellOutcome(cell=CELLS[CUDA], status="failed", reason=f"{evil}\n{evil}\x1b[31m"),
        CellOutcome(cell=CELLS[HIT], status="skipped", reason=evil),
    ]
    text = page(monkeypatch, EVENTS, hostile, kernel=evil)
    assert "<script" not in text
    assert "alert(1)</" not in text
    assert "\x1b" not in text
    assert [bar["text"] for bar in bars(text, "made")] == ["script>'\"&.o"]


def test_a_page_of_the_same_events_is_the_same(monkeypatch, text):
    assert page(monkeypatch, EVENTS, OUTCOMES) == text


def test_a_build_that_told_nothing_has_a_page(monkeypatch):
    text = page(monkeypatch, [], [CellOutcome(cell=CELLS[CPU], status="hit")])
    assert "<svg" not in text
    assert CPU in text


def test_the_page_names_the_trace(text):
    assert "<code>report.trace.json</code>" in text


@pytest.mark.parametrize(
    ("whole", "texts"),
    [
        (47.0, ["0 s", "10 s", "20 s", "30 s", "40 s"]),
        (0.3, ["0.0 s", "0.1 s", "0.2 s", "0.3 s"]),
        (0.2, ["0.00 s", "0.05 s", "0.10 s", "0.15 s", "0.20 s"]),
        (100000.0, ["0 s", "20000 s", "40000 s", "60000 s", "80000 s", "100000 s"]),
        (0.0, []),
    ],
)
def test_ticks_are_round(whole, texts):
    assert [text for _, text in ticks(whole)] == texts


def test_ticks_stand_at_their_times():
    assert [x for x, _ in ticks(20.0)] == ["0.000%", "25.000%", "50.000%", "75.000%", "100.000%"]


def test_the_warnings_of_compilers_are_with_their_cell_and_as_text(monkeypatch):
    report = BuildReport(warnings=("a.cpp:1:2: warning: #warning <b>\n    1 | <b>",))
    warned = CellOutcome(cell=CELLS[CPU], status="built", report=report)
    text = page(monkeypatch, (done(1, CPU),), (warned,))
    assert (
        "Warnings of compilers: 1</summary><pre>a.cpp:1:2: warning: #warning &lt;b&gt;\n    1 | &lt;b&gt;</pre>" in text
    )
