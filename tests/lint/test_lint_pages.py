"""Every code has a page, and the examples of a page are what it says they are."""

import re

import pytest

from builder import lint, toml
from builder.cli import run
from builder.kernel import tree
from builder.lint.findings import PAGES, titles_of_codes
from tests.paths import ROOT

PAGE_FILES = sorted(PAGES.glob("B*.md"))
TITLES = titles_of_codes()
FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FEW = 3
"""Files that a tree may have here, so that no test makes 200,000."""


def sections(page):
    """Return the wrong and the right example, and the files of the right one: its sources, and the package."""
    text = page.read_text(encoding="utf-8")
    wrong, right = map(FENCE.findall, text.split("## Wrong\n")[1].split("## Right\n"))
    config = toml.loads(next(text for kind, _, text in right if kind == "toml"))
    parts = [config.get("torch", {}), *config.get("extension", {}).values(), *config.get("kernel", {}).values()]
    module = config["general"]["name"].replace("-", "_")
    parent = "ctypes-ext" if "ctypes" in config else "torch-ext"
    return wrong, right, [*(entry for part in parts for entry in part.get("src", [])), f"{parent}/{module}/__init__.py"]


def make(root, fences, listed):
    """Write an example: the files that its page names, or else those that the right example lists, and a package."""
    kinds = {kind: text for kind, path, text in fences if not path}
    names = kinds["text"].splitlines() if "text" in kinds else listed
    for name in names:
        path, _, target = name.partition(" -> ")
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if target:
            (root / target).resolve().parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target)
        else:
            (root / path).touch()
    if "toml" in kinds:
        (root / "build.toml").write_text(kinds["toml"], encoding="utf-8")
    for _, path, text in fences:
        if path:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setattr(tree, "MOST_FILES", FEW)
    root = tmp_path / "work" / "relu"
    root.mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "relu.cpp").touch()
    return root


def found(root):
    problems = [located.problem for located in lint.inspect(root).found]
    serious = {problem.code for problem in problems if problem.severity != "note"}
    return serious, {problem.code for problem in problems}


@pytest.mark.parametrize("page", PAGE_FILES, ids=lambda page: page.stem)
def test_the_wrong_example_has_its_code_and_no_other_error(page, project):
    wrong, _, listed = sections(page)
    make(project, wrong, listed)
    if page.stem == "B035":
        (project / "everything").mkdir()
        for number in range(FEW + 1):
            (project / "everything" / f"{number}.txt").touch()
    serious, every = found(project)
    assert page.stem in every
    assert serious - RELATED.get(page.stem, set()) <= {page.stem}


RELATED = {"B036": {"B124"}, "B037": {"B124"}, "B107": {"B111"}}
"""What cannot but come with another: an old file is old, too."""


@pytest.mark.parametrize("page", PAGE_FILES, ids=lambda page: page.stem)
def test_the_right_example_has_no_problem(page, project):
    _, right, listed = sections(page)
    make(project, right, listed)
    serious, every = found(project)
    assert serious == set()
    assert page.stem not in every


def test_every_code_has_a_page_and_every_page_a_code():
    assert [page.stem for page in PAGE_FILES] == list(TITLES)


@pytest.mark.parametrize("page", PAGE_FILES, ids=lambda page: page.stem)
def test_a_page_is_titled_by_its_code(page):
    first = page.read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# {page.stem}: {TITLES[page.stem]}"


def test_every_code_in_the_program_is_known():
    package = ROOT / "builder"
    used = {code for path in package.rglob("*.py") for code in re.findall(r'"(B\d{3})"', path.read_text("utf-8"))}
    assert used == set(TITLES)


def test_explain_shows_the_page(capsys):
    assert run(["check", "--explain", "b120"]) == 0
    assert capsys.readouterr().out == (PAGES / "B120.md").read_text(encoding="utf-8")


def test_explain_refuses_a_code_that_there_is_not(capsys):
    assert run(["check", "--explain", "B999"]) == 2
    assert "no page explains 'B999'" in capsys.readouterr().err
