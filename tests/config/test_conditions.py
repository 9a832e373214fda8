"""The table `when` of a component."""

import itertools

import pytest
from packaging.specifiers import SpecifierSet

from builder.config import Version, parse
from builder.config.conditions import VersionRange
from builder.config.values import InvalidValueError
from tests.config.dump import dump
from tests.config.texts import GENERAL, five, problems_of, source

CUDA = '[torch]\n[kernel.a]\nbackend = "cuda"\ndepends = []\nsrc = []\n'
VERSIONS = [f"{major}.{minor}" for major in (1, 2, 3) for minor in (0, 9, 10, 11)]
CLAUSES = [f"{sign}{version}" for sign in (">=", "<=", "==", "!=", ">", "<") for version in ("2.0", "2.10")]


@pytest.mark.parametrize("pair", list(itertools.combinations_with_replacement(CLAUSES, 2)), ids=",".join)
def test_a_range_has_the_versions_that_packaging_says(pair):
    expected = [version for version in VERSIONS if version in SpecifierSet(",".join(pair))]
    if not expected:
        with pytest.raises(InvalidValueError, match=r"^no version is in"):
            VersionRange(" , ".join(pair))
        return
    found = VersionRange(" , ".join(pair))
    assert [version for version in VERSIONS if Version(version) in found] == expected
    assert found.clauses == pair


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("12.8", "write '>=12.8'"),
        ("=12.8", "write '==12.8'"),
        ("~=12.8", "write '>=12.8'"),
        (">=12", "write '>=12.0'"),
        (">=12.8.1", "write '>=12.8'"),
        (">=13.0,<12.0", "remove one of the clauses that contradict"),
        ("new", None),
    ],
)
def test_a_range_that_is_none_comes_with_its_remedy(text, help_):
    (problem,) = problems_of(GENERAL + CUDA + f'when = {{ cuda = "{text}" }}\n')
    assert (problem.code, problem.key, problem.help) == ("B042", ("kernel", "a", "when", "cuda"), help_)


@pytest.mark.parametrize(
    ("backend", "entry", "message"),
    [
        ("cpu", 'cuda = ">=12.8"', "'cuda' never holds in a component of 'cpu'"),
        ("xpu", 'arch = "9.0"', "'9.0' never holds in a component of 'xpu'"),
        ("cuda", 'arch = ["9.0", "gfx942"]', "'gfx942' never holds in a component of 'cuda'"),
        ("rocm", 'arch = "9.0a"', "'9.0a' never holds in a component of 'rocm'"),
    ],
)
def test_a_condition_that_never_holds_is_refused_at_its_key(backend, entry, message):
    (problem,) = problems_of(GENERAL + CUDA.replace('"cuda"', f'"{backend}"') + f"when = {{ {entry} }}\n")
    assert (problem.code, problem.message) == ("B042", message)
    assert problem.span is not None


def test_a_kernel_without_torch_has_no_condition_on_it():
    text = GENERAL + CUDA.replace("[torch]", "[tvm-ffi]\nsrc = []") + 'when = { torch = ">=2.10" }\n'
    (problem,) = problems_of(text)
    assert problem.message == "'torch' never holds in a kernel that is built without torch"


def test_a_component_with_every_key_of_ours_is_written_and_read_back():
    lines = """
libraries = ["cublas"]
exclude = ["a"]
defines = { X = true, Y = "a" }
file-flags = { "csrc/*.cu" = ["-O1"] }
when = { cuda = ">=12.8,<14.0", torch = ">=2.10", system = ["x86_64-linux"], arch = "9.0a" }
"""
    config = five(CUDA + lines)
    assert parse(source(dump(config))) == config
    assert config.kernel["a"].when.archs == ("9.0a",)
