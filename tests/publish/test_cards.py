"""The pages for people: what they say, and what they never let in."""

import dataclasses
import json
import re

import pytest

from builder.matrix.variant import Variant
from builder.publish import index
from builder.publish.index import people, words
from builder.publish.index.people import Card
from builder.publish.index.table import Table
from builder.wheel import kernel_wheel
from builder.wheel.archive import Bytes
from tests.given.pages import tags
from tests.wheels import make, read

CPU = Variant.parse("torch-cpu")
FRONT_LIMIT = 200_000
HOSTILE = """</p></script><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7 * 7 }}"""


def test_a_card_says_what_a_kernel_is_and_what_it_runs_on(tmp_path):
    content = '# a comment\n"""Scale `x`\nby a factor.\n\nMore of it.\n"""\n'
    names = ["torch212-cxx11-cpu-x86_64-linux", "torch213-cxx11-cu130-x86_64-linux"]
    wheels = [make(tmp_path, "scale", Variant.parse(name), content=content) for name in names]
    page = index.build(kernel_wheel.read_all(wheels))["index.html"].content.decode()
    assert '<p class="summary">Scale x by a factor.</p>' in page
    assert "<span>CPU</span> <span>CUDA</span>" in page
    assert re.search(r"1\.0\.0 · torch 2\.12 to 2\.13 · 2 wheels, [0-9.]+ KiB", page)
    assert 'data-backend="cpu cuda" data-torch="torch213 torch212"' in page


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('"""One line."""', "One line."),
        ("'''Other quotes.'''\n", "Other quotes."),
        ("import os\n", ""),
        ("", ""),
        ('"""Never closed', ""),
        (" " * 20_000 + "x", ""),
        ('"""' + "word " * 100 + '"""', f"{('word ' * 32).strip()}…"),
        ('"""Turned \u202e around."""', "Turned \\u202e around."),
    ],
    ids=range(8),
)
def test_the_summary_of_a_kernel_is_its_docstring(tmp_path, content, said):
    (wheel,) = kernel_wheel.read_all([make(tmp_path, "relu", CPU, content=content)])
    assert words.summary(wheel) == said


def test_a_page_lets_in_no_script_and_asks_nobody_else(tmp_path):
    site = index.build(read(tmp_path, "torch-cpu"))
    pages = ("index.html", "kernels/relu/index.html")
    for page in (site[path].content.decode() for path in pages):
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self';")
        assert not re.search(r"<style| style=| on\w+=|<script>|unsafe", page)
        assert not re.search(r'(?:src|href)="(?:https?:)?//', page)


def test_hostile_texts_are_shown_as_they_are(tmp_path):
    (wheel,) = kernel_wheel.read_all([make(tmp_path, "relu", CPU, content=f'"""{HOSTILE}"""', requires=[HOSTILE])])
    for key in ("license", "source", "upstream", "version"):
        wheel.metadata.table[key] = HOSTILE
    wheel.metadata.table["backend"]["archs"] = [HOSTILE]
    wheel.metadata.table["build"] = {"project": HOSTILE}
    wheel.metadata.table["provenance"] = {"kernel-builder": {"version": HOSTILE}, "kernel": {"commit": [HOSTILE]}}
    site = index.build([wheel], index.Settings(base_url='https://example.org/"><script>alert(2)</script>'))
    for path in ("index.html", "kernels/relu/index.html"):
        found = [tag for tag, _ in tags(site[path].content.decode())]
        assert found.count("script") == 1
        assert "img" not in found
        assert "49" not in site[path].content.decode().replace(wheel.sha256, "")


def test_the_front_page_of_1000_kernels_is_small_and_leads_to_all(tmp_path):
    (wheel,) = kernel_wheel.read_all([make(tmp_path, "relu", CPU, content=f'"""{"word " * 50}"""')])
    one = Card.of(Table.of([wheel]))
    many = [dataclasses.replace(one, name=f"a-kernel-with-a-long-name-{number:04}") for number in range(1000)]
    pages = people.front(many, ("torch213-cpu",) * 60, places=(), base_url=None)
    assert len(pages["index.html"]) < FRONT_LIMIT
    rest = json.loads(pages["kernels.json"])
    assert len(rest) + people.ON_FRONT == len(many)
    listed = {given["href"] for tag, given in tags(pages["all/index.html"].decode()) if tag == "a"}
    assert {f"../kernels/{card.name}/" for card in many} <= listed


def test_a_site_of_few_kernels_has_them_all_on_its_front_page(tmp_path):
    site = index.build([*read(tmp_path, "torch-cpu"), *read(tmp_path, "torch-cpu", kernel="silu")])
    assert not {"all/index.html", "kernels.json"} & site.keys()


def test_a_page_leads_to_the_bill_of_materials_and_to_lines_that_verify(tmp_path):
    bill = '{"bomFormat": "CycloneDX"}'
    name = f"relu-1.0.0+{CPU.label}.dist-info/sboms/relu.cdx.json"
    (wheel,) = kernel_wheel.read_all([make(tmp_path, "relu", CPU, extra={name: Bytes(bill.encode())})])
    wheel.metadata.table["source"] = "https://github.com/some/relu.git"
    site = index.build([wheel])
    page = site["kernels/relu/index.html"].content.decode()
    file = wheel.wheel.path.name
    assert site[f"files/{file}.cdx.json"].content == bill.encode()
    assert f"{file.replace('+', '%2B')}.cdx.json" in page
    assert f"gh attestation verify {file} --repo some/relu" in page
    assert f"echo &#39;{wheel.sha256}  {file}&#39; | sha256sum --check" in page


def test_a_readme_is_shown_as_plain_text(tmp_path):
    (wheel,) = kernel_wheel.read_all([make(tmp_path, "relu", CPU)])
    core = wheel.core.rstrip() + f"\n\n# Title\n\n\tcode\n{HOSTILE}\u202e\n".encode()
    page = index.build([dataclasses.replace(wheel, core=core)])["kernels/relu/index.html"].content.decode()
    assert "# Title\n\n        code\n&lt;/p&gt;" in page
    assert "\\u202e</pre>" in page
    assert [tag for tag, _ in tags(page)].count("script") == 1
    assert 'id="readme"' not in index.build([wheel])["kernels/relu/index.html"].content.decode()


def test_a_long_readme_is_cut(tmp_path):
    (wheel,) = kernel_wheel.read_all([make(tmp_path, "relu", CPU)])
    core = wheel.core.rstrip() + b"\n\n" + b"word " * 10_000
    assert len(words.description(dataclasses.replace(wheel, core=core))) < len(core) / 2
