"""The figures of the README's first screen are those that a reader finds where it sends him."""

import re

import pytest

from builder import matrix
from builder.ci.plan import make
from builder.ci.plan.text import savings
from builder.kernel import load
from builder.matrix.selection import Scope
from tests.paths import ROOT

README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
BENCHMARKS, STORE, PORT = "benchmarks/README.md", "docs/store.md", "docs/howto/from-setup-py.md"
FIGURES = [
    ("17 variations", BENCHMARKS, "17 variations by 7 backends, 4 builds of each: 0 differences"),
    ("by 7 backends, 4 builds of each, 0 differences", BENCHMARKS, "17 variations by 7 backends, 4 builds of each: 0 "),
    ("Killed 200 times in whole builds", STORE, "200 times with whole builds"),
    ("4.5 s instead of 43.7 s", BENCHMARKS, "| one `.cu` edited | 4.5 |"),
    ("4.5 s instead of 43.7 s", BENCHMARKS, "| 40 CUDA files, `--no-cache` | 43.7"),
    ("0.42 s, a sixteenth of what pip takes", BENCHMARKS, "0.42 s, a sixteenth of what pip takes"),
    ("in 59.7 s and 892 MiB", BENCHMARKS, "| `builder build`, one budget | 59.7 | 1.00 | 108.8 | 892 MiB |"),
    ("by hand 88.8 s one after the other", BENCHMARKS, "| by hand, one after the other, all cores each | 88.8 |"),
    (
        "or 1250 MiB all at once",
        BENCHMARKS,
        "| by hand, all at once, all cores each | 68.3 | 1.14 | 121.7 | 1250 MiB |",
    ),
    ("a wheel of 196 MiB", BENCHMARKS, "a wheel of 196 MiB: 1.25 s"),
    ("flash-attention's 97 sources in 5.2 s, with equal", PORT, "(`0251105`) | 5.2 s | 15 s | 97 | equal |"),
    ("1.18 times its bare compiler commands", BENCHMARKS, "`--rebuild` without a cache 1.39 and **1.18**"),
]


@pytest.mark.parametrize(("said", "file", "source"), FIGURES, ids=[f"{said} {of[:12]}" for said, _, of in FIGURES])
def test_a_figure_of_the_readme_is_where_a_reader_can_check_it(said, file, source):
    assert said in README
    assert source in " ".join((ROOT / file).read_text(encoding="utf-8").split())


def test_the_readme_counts_the_wheels_of_the_matrix_as_it_is():
    cells = make(load(ROOT / "examples" / "relu"), matrix.rows(), Scope()).cells
    assert f"relu is {len(cells)} wheels on {len({cell.system for cell in cells})} systems" in README
    found = savings(make(load(ROOT / "examples" / "rmsnorm-stable"), matrix.rows(), Scope()), matrix.rows())
    wheels, without = sum(each.wheels for each in found), sum(each.wheels_without for each in found)
    assert f"rmsnorm is {wheels} wheels instead of {without}" in README


def test_each_line_of_the_first_screen_says_where_to_check_it():
    _, _, rest = README.partition("with the figure to check: ")
    points, _, _ = rest.partition(" The price: ")
    found = re.split(r"(?:^| )- \*\*", points)[1:]
    assert len(found) == 7
    assert all("](" in point or "`builder " in point for point in found)
