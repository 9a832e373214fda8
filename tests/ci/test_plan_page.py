"""The plan as a page: all that `--explain` knows, in one file that needs nothing else and runs nothing."""

import base64
import hashlib
import html
import re

import pytest

from builder.ci.plan import explained_rows, footnotes, make, text
from builder.ci.plan.text import page
from builder.cli import run
from builder.config import Backend
from builder.kernel import load
from builder.matrix import rows
from builder.matrix.selection import Scope
from tests.paths import ROOT

EXAMPLES = ROOT / "examples"
RELU, STABLE, NOARCH = (EXAMPLES / name for name in ("relu", "rmsnorm-stable", "silu-and-mul"))


def plan(root=RELU, **scope):
    return make(load(root), rows(), Scope(**{"sets": ("release", "legacy", "preview"), **scope}))


def words(content):
    """Return the words of a page as a reader sees them."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", content)).split())


@pytest.mark.parametrize("root", [RELU, STABLE, NOARCH], ids=["classic", "stable", "noarch"])
def test_the_page_says_of_each_row_what_explain_says(root):
    wanted, shown = plan(root), words(page((plan(root),), None))
    told = text.explain(wanted)
    for row in explained_rows(wanted):
        for word in (row.message, row.where, row.remedy, row.rule):
            assert " ".join(word.split()) in shown
            assert word in told
    for note in footnotes(wanted):
        assert " ".join(note.split()) in shown


def test_the_page_has_each_cell_and_rows_left_out_by_their_rule():
    content = page((plan(),), None)
    assert all(f"<code>{cell.variant}</code>" in content for cell in plan().cells)
    left = [row.rule for row in explained_rows(plan()) if row.is_left_out]
    found = re.findall(r"<summary>(\d+) by the rule <code>([a-z-]+)</code></summary>", content)
    assert {rule: int(count) for count, rule in found} == {rule: left.count(rule) for rule in left}


def test_the_page_needs_no_other_file_and_runs_nothing():
    content = page((plan(),), None)
    tags = re.findall(r"<([a-z]\w*)([^>]*)>", content)
    assert not {"script", "link", "img", "iframe", "base", "form", "object"} & {name for name, _ in tags}
    assert not [tag for tag in tags if re.search(r"\b(src|href|style|onclick|onload)=", tag[1])]
    assert "http://" not in content
    assert "url(" not in content


def test_the_policy_of_the_page_allows_its_own_style_and_nothing_else():
    content = page((plan(),), None)
    (style,) = re.findall(r"<style>(.*?)</style>", content, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', content)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_the_page_follows_the_light_and_the_dark_of_the_reader():
    assert "color-scheme: light dark" in page((plan(),), None)


def test_each_table_has_a_caption_and_can_be_scrolled_by_keyboard():
    content = page((plan(),), None)
    assert content.count("<table>") == content.count("<caption>") == content.count('tabindex="0" role="region"') > 1
    labels = re.findall(r'aria-label="([^"]*)"', content)
    assert len(labels) == len(set(labels))


def test_text_of_others_is_no_markup():
    hostile = "<script>alert(1)</script>&\"'"
    content = page((), None, {hostile: hostile})
    assert "<script" not in content
    assert words(content).count("alert(1)") == 2


def test_the_same_plan_is_the_same_page():
    assert page((plan(),), None) == page((plan(),), None)


def test_the_command_writes_one_page(capsys):
    assert run(["matrix", "--format", "html", str(RELU), "--backend", "cpu"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("<!DOCTYPE html>\n")
    assert out.endswith("</html>\n")
    assert err == ""


def test_several_kernels_are_one_page_with_a_part_for_each(capsys):
    assert run(["matrix", "--format", "html", str(RELU), str(STABLE)]) == 0
    out = capsys.readouterr().out
    assert out.count("<!DOCTYPE html>") == 1
    assert re.findall(r"<h2>(\w[\w-]*): \d+ cells", out) == ["relu", "rmsnorm-stable"]
    assert out.count("<h1>") == 1


def test_with_shards_the_page_has_the_jobs(capsys):
    assert run(["matrix", "--format", "html", str(RELU), "--shards", "12"]) == 0
    out = capsys.readouterr().out
    assert "<h2>Jobs</h2>" in out
    assert len(re.findall(r'data-column="Job">[\w.-]+</td>', out)) == 12


def test_a_plan_without_a_cell_is_a_page_that_says_why_and_an_error(capsys):
    assert run(["matrix", "--format", "html", str(RELU), "--backend", "xpu", "--system", "aarch64-linux"]) == 3
    out, err = capsys.readouterr()
    assert "<h2>relu: 0 cells</h2>" in out
    assert "no row" in out or "Left out" in out
    assert "there is nothing to build" in err


def test_explain_and_savings_are_tables_and_no_page(capsys):
    assert run(["matrix", "--format", "html", str(RELU), "--explain"]) == 2
    assert "other formats take neither" in capsys.readouterr().err


def test_a_backend_that_no_row_has_is_said():
    wanted = plan(backends=(Backend.XPU,), systems=("aarch64-linux",))
    assert words(page((wanted,), None)).count(" ".join(footnotes(wanted)[0].split())) == 1
