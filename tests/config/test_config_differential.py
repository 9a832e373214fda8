"""Configs are accepted and refused as the public parser does, but for differences that are listed here."""

import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kernels._rust import Build

from builder.config import read
from tests.config.texts import differences, document, refusal_of, source
from tests.paths import TESTS

DATA = TESTS / "data/config"
VALID = sorted((DATA / "valid").glob("*.toml"))
VERDICTS = {  # (this parser, the public one)
    "accept": (True, True),
    "refuse": (False, False),
    "stricter": (False, True),
    "looser": (True, False),
}
LOOSER = (  # what the public parser says of what only this one accepts
    r"unsupported legacy format",  # schemas 1 to 3 are read
    r"did not match v4 .* or v3",
    r"unknown field `(matrix|build|wheel|extension)`",  # extensions
    r"Unknown field (defines|libraries|exclude|file-flags|when|python-abi|extension)\. Expected one of",
    r"Unknown field (cuda-capabilities|rocm-archs)\. Expected one of pyext",  # as its own documentation spells them
)
STRICTER = {
    "B023": "a path leaves the project",
    "B024": "no CUDA capability",
    "B025": "no ROCm architecture",
    "B026": "no file extension",
    "B027": "no name that CMake can have",
    "B028": "an unknown Python dependency",
}
ACCIDENT = re.compile(r"must be a table, found an array|must be a string, found a table")
"""The public parser takes an array of the values of a table, and `{ name = {} }` for a name."""


@pytest.fixture(scope="session")
def public(tmp_path_factory):
    """Return the error of the public parser, which reads directories."""
    directory = tmp_path_factory.mktemp("public")

    def error_of(text):
        (directory / "build.toml").write_bytes(text.encode("utf-8"))
        try:
            Build.open(directory)
        except ValueError as error:
            return str(error)
        return None

    return error_of


CASES = [pytest.param(*case, id=f"{case[0]} {case[1]}.{case[2]}") for case in differences()]


@pytest.mark.parametrize(("edition", "table", "key", "values"), CASES)
def test_a_value_has_the_verdict_of_the_table(edition, table, key, values, public):
    found = {}
    for value, verdict in values:
        text = document(edition, table, key, value)
        if (refusal_of(read, source(text)) is None, public(text) is None) != VERDICTS[verdict]:
            found[value] = f"not '{verdict}'"
    assert found == {}


DOCUMENTS = [
    pytest.param("", "refuse", id="empty"),
    pytest.param("# nothing\n", "refuse", id="a comment"),
    pytest.param("[torch]\n", "refuse", id="a framework alone"),
    pytest.param("general = {}\n[torch]\n", "refuse", id="an empty general"),
    pytest.param("[[general]]\n[torch]\n", "refuse", id="an array of general"),
    pytest.param(document("edition-5", "", "x.y", "1"), "refuse", id="an unknown dotted key"),
    pytest.param(document("edition-5", "general", "cuda.minver", '"1.2"'), "accept", id="a dotted key"),
    pytest.param(document("edition-5", "torch", "stable-abi.cpu", '"2.9"'), "accept", id="a dotted stable-abi"),
    pytest.param(document("edition-5", "torch", "src", "[]") + "[kernel]\n", "accept", id="an empty kernel"),
    pytest.param(document("edition-5", "torch", "src", "[]") + "[[kernel]]\n", "refuse", id="an array of kernel"),
    pytest.param(document("edition-5", "kernel.k", "src", "[]") + "[kernel.k]\n", "refuse", id="a table twice"),
    pytest.param(document("edition-5", "torch", "src", "[]") + "src = []\n", "refuse", id="a key twice"),
    pytest.param(document("edition-5", "torch", "a", "1 2"), "refuse", id="not TOML"),
    pytest.param("\ufeff" + document("edition-5", "torch", "src", "[]"), "accept", id="a byte order mark"),
    pytest.param(document("edition-5", "torch", "src", "[]").replace("\n", "\r\n"), "accept", id="CRLF"),
    pytest.param(document("edition-5", "torch", "src", '["\\e"]'), "refuse", id="an escape of TOML 1.1"),
    pytest.param(document("edition-5", "torch", "src", '["\\ud800"]'), "refuse", id="a lone surrogate"),
    pytest.param(document("edition-5", "general", "hub", "{\n}"), "refuse", id="a newline in an inline table"),
    pytest.param(document("edition-5", "torch", "src", "[" * 90 + "]" * 90), "refuse", id="nested arrays"),
    pytest.param(document("edition-5", "torch", ".".join("a" * 90), "1"), "refuse", id="a key of many parts"),
]


@pytest.mark.parametrize(("text", "verdict"), DOCUMENTS)
def test_a_document_has_the_verdict_of_the_table(text, verdict, public):
    assert (refusal_of(read, source(text)) is None, public(text) is None) == VERDICTS[verdict]


@pytest.mark.parametrize("key", ["name", "version", "license", "backends"])
@pytest.mark.parametrize("edition", ["edition-4", "edition-5"])
def test_a_missing_key_is_refused(edition, key, public):
    text = "".join(
        line
        for line in document(edition, "torch", "src", "[]").splitlines(keepends=True)
        if not line.startswith(f"{key} =")
    )
    assert refusal_of(read, source(text)) is not None
    assert public(text) is not None


def test_the_table_has_at_least_150_cases():
    assert sum(len(case.values[-1]) for case in CASES) > 400


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_config_in_use_has_a_verdict_that_is_explained(path, public):
    assert_agreement(path.read_text(encoding="utf-8"), public)


def assert_agreement(text, public):
    mine, theirs = refusal_of(read, source(text)), public(text)
    if mine is None and theirs is not None:
        assert any(re.search(known, theirs, re.DOTALL) for known in LOOSER), f"only accepted here: {theirs}"
    if mine is not None and theirs is None:
        unexplained = [
            problem.message
            for problem in mine.problems
            if problem.code not in STRICTER and not ACCIDENT.search(problem.message)
        ]
        assert not unexplained, f"only refused here: {unexplained}"


# Mutations: of the lines of a text, and of the values between them.

TEXTS = [path.read_text(encoding="utf-8") for path in VALID if path.name.startswith(("v4", "v5"))]
SCALARS = [
    "0", "-1", "1.5", "true", "nan", '""', '"cpu"', '"2.10"', '"x"', "'é漢'", "[]", "{}", "[[]]", "[{}]", '["cpu"]',
    '["torch"]', "[1]", "1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "{ a = 1 }", "{ a.b = [] }", '"""\nx"""',
    "0x5", "5", '"\\u0041"', "1e3", "9223372036854775808", "[1, 2", '"', "'''", "= 1", "", '["a", 1]',
    '{ cpu = "2.9" }',
]  # fmt: skip
KEYS = [
    "name", "version", "edition", "license", "upstream", "source", "backends", "kernel-depends", "python-depends",
    "src", "include", "minver", "maxver", "pyext", "cxx-flags", "stable-abi", "backend", "depends",
    "cuda-capabilities", "cuda-flags", "cuda-minver", "rocm-archs", "hip-flags", "sycl-flags", "repo-id", "branch",
    "universal", "language", "x", '"quoted key"', "''", "é", "a.b", "general.hub.branch", "torch.src", "cuda.minver",
    "defines", "libraries", "exclude", "file-flags", "when", "defines.X", "when.torch", "when.cuda", "file-flags.a",
    "extension",
]  # fmt: skip
HEADERS = [
    "[general]", "[torch]", "[torch-noarch]", "[tvm-ffi]", "[kernel]", "[kernel.new]", '[kernel."a.b"]', "[[kernel]]",
    "[[general.kernel-depends]]", "[general.cuda]", "[general.neuron]", "[general.tpu]", "[general.xpu]",
    "[general.hub]", "[torch.stable-abi]", "[build]",
    "[extension]", "[extension.moe]", "[", "[[torch]]", "[a.b.c]", "[general.cuda.minver]",
]  # fmt: skip


MUTATIONS = ("drop", "duplicate", "swap", "insert", "retype", "rename", "scramble", "retable")


@st.composite
def mutated(draw):
    lines = draw(st.sampled_from(TEXTS)).splitlines()
    for mutation in draw(st.lists(st.sampled_from(MUTATIONS), min_size=1, max_size=3)):
        lines = lines or [""]
        at, other = (draw(st.integers(min_value=0, max_value=len(lines) - 1)) for _ in range(2))
        line, (key, _, value) = lines[at], lines[at].partition("=")
        headers = [number for number, each in enumerate(lines) if each.startswith("[")]
        scalar, header = draw(st.sampled_from(SCALARS)), draw(st.sampled_from(HEADERS))
        match mutation:
            case "drop":
                del lines[at]
            case "duplicate":
                lines.insert(at, line)
            case "swap":
                lines[at], lines[other] = lines[other], line
            case "insert":
                lines.insert(at, draw(st.sampled_from([f"{draw(st.sampled_from(KEYS))} = {scalar}", header])))
            case "retype":
                lines[at] = f"{key}= {scalar}"
            case "rename":
                lines[at] = f"{draw(st.sampled_from(KEYS))} ={value}"
            case "scramble":
                where = draw(st.integers(min_value=0, max_value=len(line)))
                what = draw(st.sampled_from(list("\"'[]{}=.,#- \\\tx5\u00e9\u6f22\x00\x7f\r\x0b")))
                lines[at] = line[:where] + what + line[where + draw(st.integers(min_value=0, max_value=1)) :]
            case "retable" if headers:
                lines[draw(st.sampled_from(headers))] = header
    return "\n".join(lines) + "\n"


COUNTS = pytest.mark.parametrize("count", [300, pytest.param(2_000, marks=pytest.mark.slow)])


@COUNTS
def test_a_mutated_config_has_a_verdict_that_is_explained(public, count):
    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(text=mutated())
    @example(text="a = 1\r")
    def holds(text):
        assert_agreement(text, public)

    holds()


@st.composite
def urls(draw):
    schemes = ["", "https:", "http://", "ssh://", "git:", "git+ssh://", "https://", "git@", "1", "GIT://"]
    return draw(st.sampled_from(schemes)) + draw(st.text(alphabet="ab1.:/@?#[]\\ %-+_~^|<x0\t\x00", max_size=9))


@COUNTS
def test_a_git_url_has_the_verdict_of_the_public_parser(public, count):
    @settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
    @given(url=urls())
    @example(url="ssh://@")
    @example(url="ssh://:@")
    @example(url="ssh://:@?")
    @example(url="ssh://@#a")
    @example(url="ssh://@/")
    @example(url="ssh://a@?")
    @example(url="ssh://0:\\")
    def holds(url):
        spelled = url.replace("\\", "\\\\").replace("\t", "\\t").replace("\x00", "\\u0000")
        text = document("edition-5", "general", "upstream", f'"{spelled}"')
        assert (refusal_of(read, source(text)) is None) == (public(text) is None)

    holds()
