"""When wheels came into an index: said by who makes it, kept, and shown where it is known."""

import json
import os
import re

import pytest

from builder.cli import run
from builder.errors import BuilderError
from builder.matrix.variant import Variant
from builder.publish import index
from builder.publish.index import simple
from builder.wheel import kernel_wheel
from tests.given.files import tree
from tests.wheels import make

FIRST, SECOND = Variant.parse("torch212-cxx11-cpu-x86_64-linux"), Variant.parse("torch213-cxx11-cpu-x86_64-linux")
CARD = re.compile(r'<p class="facts">(.*)</p>')


@pytest.fixture
def dist(dist):
    make(dist, "relu", FIRST)
    return dist


def times(site, place="simple"):
    files = json.loads((site / place / "relu/index.json").read_text())["files"]
    return [file.get("upload-time") for file in files]


def test_without_a_time_nothing_says_one(indexed):
    site = indexed()
    assert times(site) == [None]
    assert "uploaded" not in json.loads((site / "builder-index.json").read_text())
    assert not any(b"eleased" in content for path, content in tree(site).items() if path.endswith(".html"))


def test_a_time_is_kept_and_is_that_of_the_first_wheel_of_a_version(dist, indexed):
    indexed("--upload-time", "2026-08-01")
    make(dist, "relu", SECOND)
    site = indexed("--upload-time", "2026-09-02T14:30:00+02:00", "--variants")
    expected = ["2026-08-01T00:00:00Z", "2026-09-02T12:30:00Z"]
    assert times(site) == expected
    assert set(times(site, "variants/torch212/simple")) == {expected[0], None}
    assert set(times(site, "variants/torch213/simple")) == {expected[1], None}
    assert times(site, "for/torch213-cpu/simple") == expected[1:]
    assert CARD.search((site / "index.html").read_text())[1].endswith("· released 2026-08-01")
    make(dist, "relu", SECOND, version="1.1.0")
    site = indexed("--upload-time", "2026-10-03")
    assert CARD.search((site / "index.html").read_text())[1].endswith("· released 2026-10-03")
    page = (site / "kernels/relu/index.html").read_text()
    assert re.findall(r'Released on <time datetime="([^"]+)">\1</time>', page) == ["2026-10-03", "2026-08-01"]
    before = tree(site)
    assert tree(indexed("--upload-time", "2027-01-01")) == before
    assert times(indexed()) == [*expected, "2026-10-03T00:00:00Z"]


def test_a_version_of_which_a_wheel_came_at_an_unknown_time_has_no_day(dist, indexed):
    indexed()
    make(dist, "relu", SECOND)
    site = indexed("--upload-time", "2026-08-01")
    assert times(site) == [None, "2026-08-01T00:00:00Z"]
    assert "eleased" not in (site / "index.html").read_text() + (site / "kernels/relu/index.html").read_text()


def test_now_is_the_clock_s_time_or_the_one_that_stands_for_it(indexed, monkeypatch):
    monkeypatch.setitem(os.environ, "SOURCE_DATE_EPOCH", "1785542400")
    assert times(indexed("--upload-time", "now")) == ["2026-08-01T00:00:00Z"]


def test_the_clock_says_what_is_now(indexed, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setattr("time.time", lambda: 1785542401.5)
    assert times(indexed("--upload-time", "now")) == ["2026-08-01T00:00:01Z"]


@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01", "0001-01-01T00:00:00+23:00", "Z"])
def test_what_is_no_time_is_refused(dist, tmp_path, text, capsys):
    assert run(["index", str(dist), "--output", str(tmp_path / "site"), "--upload-time", text]) == 2
    assert f"'{text}' is not a time" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("text", "time"),
    [("2026-08-01", "2026-08-01T00:00:00Z"), ("2026-08-01T10:20:30.5Z", "2026-08-01T10:20:30Z")],
)
def test_a_time_is_written_in_one_way(text, time):
    assert simple.parse_time(text) == time
    assert simple.is_time(time)


@pytest.mark.parametrize("said", [[], {"x": 1}, {"x": "<b>"}], ids=repr)
def test_times_that_a_manifest_cannot_have_are_refused(dist, indexed, said, capsys):
    manifest = indexed("--upload-time", "2026-08-01") / "builder-index.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"uploaded": said}))
    assert run(["index", str(dist), "--output", str(manifest.parent)]) == 3
    assert "has invalid times" in capsys.readouterr().err


def test_kernels_that_are_not_on_the_front_page_have_their_day_too(tmp_path):
    names = [f"kernel-{number:03}" for number in range(101)]
    wheels = kernel_wheel.read_all([make(tmp_path, name, FIRST) for name in names])
    last = wheels[-1].wheel.path.name
    site = index.build(wheels, index.Settings(uploaded={last: "2026-08-01T00:00:00Z"}))
    (rest,) = json.loads(site["kernels.json"].content)
    assert rest["released"] == "2026-08-01"
    assert site["all/index.html"].content.decode().count("released 2026-08-01") == 1


def test_an_error_names_what_can_be_written():
    with pytest.raises(BuilderError, match="write 'now', a day such as '2026-08-01'"):
        simple.parse_time("soon")
