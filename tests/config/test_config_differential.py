"""Configs are accepted and refused as the public parser does, but for differences that are listed here."""

import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kernels._rust import Build

from builder import toml
from builder.config import read
from builder.config.text import Source
from builder.errors import ConfigError
from tests.paths import TESTS

DATA = TESTS / "data/config"
VALID = sorted((DATA / "valid").glob("*.toml"))
VERDICTS = {  # (this parser, the public one)
    "accept": (True, True),
    "refuse": (False, False),
    "stricter": (False, True),
    "looser": (True, False),
}
BASE = {
    "": {},
    "general": {"name": '"relu"', "version": "1", "edition": "5", "license": '"MIT"', "backends": '["cpu"]'},
    "kernel.k": {"backend": '"cpu"', "depends": "[]", "src": "[]"},
    "kernel.cuda": {"backend": '"cuda"', "depends": "[]", "src": "[]"},
    "kernel.rocm": {"backend": '"rocm"', "depends": "[]", "src": "[]"},
    "kernel.xpu": {"backend": '"xpu"', "depends": "[]", "src": "[]"},
    "kernel.metal": {"backend": '"metal"', "depends": "[]", "src": "[]"},
    "torch": {},
    "torch-noarch": {},
    "tvm-ffi": {"src": "[]"},
    "wheel": {},
}
FRAMEWORKS = ("torch", "torch-noarch", "tvm-ffi")

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


def document(edition, table, key, value):
    """Return a config in which `key` of `table` is `value`."""
    framework = table if table in FRAMEWORKS else "torch"
    needed = dict.fromkeys(["", "general", framework, *([table] if table not in FRAMEWORKS else [])])
    tables = {name: dict(BASE[name]) for name in needed}
    if edition == "edition-4":
        del tables["general"]["edition"]
    if table == "" and key in tables:
        del tables[key]
    tables[table][key] = value
    lines = []
    for name, keys in tables.items():
        lines += [f"[{name}]"] * bool(name) + [f"{name_} = {value_}" for name_, value_ in keys.items()]
    return "\n".join(lines) + "\n"


def cases():
    """Yield for each key of a table the values that it may have, with their verdicts."""
    for edition, tables in toml.loads((DATA / "differential.toml").read_text(encoding="utf-8")).items():
        for table, keys in tables.items():
            for key, verdicts in keys.items():
                values = [(value, verdict) for verdict, of in verdicts.items() for value in of]
                yield pytest.param(edition, table, key, values, id=f"{edition} {table}.{key}")


def ours(text):
    """Return the error of this parser."""
    try:
        read(Source(name="build.toml", text=text))
    except ConfigError as error:
        return error
    return None


class Public:
    """The public parser, which reads directories."""

    def __init__(self, directory):
        self.directory = directory

    def __call__(self, text):
        """Return its error."""
        (self.directory / "build.toml").write_bytes(text.encode("utf-8"))
        try:
            Build.open(self.directory)
        except ValueError as error:
            return str(error)
        return None


@pytest.fixture(scope="session")
def public(tmp_path_factory):
    return Public(tmp_path_factory.mktemp("public"))


@pytest.mark.parametrize(("edition", "table", "key", "values"), list(cases()))
def test_a_value_has_the_verdict_of_the_table(edition, table, key, values, public):
    found = {}
    for value, verdict in values:
        text = document(edition, table, key, value)
        if (ours(text) is None, public(text) is None) != VERDICTS[verdict]:
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
    assert (ours(text) is None, public(text) is None) == VERDICTS[verdict]


@pytest.mark.parametrize("key", ["name", "version", "license", "backends"])
@pytest.mark.parametrize("edition", ["edition-4", "edition-5"])
def test_a_missing_key_is_refused(edition, key, public):
    text = "".join(
        line
        for line in document(edition, "torch", "src", "[]").splitlines(keepends=True)
        if not line.startswith(f"{key} =")
    )
    assert ours(text) is not None
    assert public(text) is not None


def test_the_table_has_at_least_150_cases():
    assert sum(len(case.values[-1]) for case in cases()) > 400


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_config_in_use_has_a_verdict_that_is_explained(path, public):
    assert_agreement(path.read_text(encoding="utf-8"), public)


def assert_agreement(text, public):
    mine, theirs = ours(text), public(text)
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


@st.composite
def mutated(draw):
    lines = draw(st.sampled_from(TEXTS)).splitlines()
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        lines = draw(st.sampled_from(MUTATIONS))(draw, lines)
    return "\n".join(lines) + "\n"


def at(draw, lines):
    return draw(st.integers(min_value=0, max_value=max(0, len(lines) - 1)))


def drop(draw, lines):
    number = at(draw, lines)
    return lines[:number] + lines[number + 1 :]


def duplicate(draw, lines):
    number = at(draw, lines)
    return [*lines[: number + 1], *lines[number : number + 1], *lines[number + 1 :]]


def swap(draw, lines):
    lines = list(lines) or [""]
    first, second = at(draw, lines), at(draw, lines)
    lines[first], lines[second] = lines[second], lines[first]
    return lines


def insert(draw, lines):
    number = at(draw, lines)
    pair = f"{draw(st.sampled_from(KEYS))} = {draw(st.sampled_from(SCALARS))}"
    return [*lines[:number], draw(st.sampled_from([pair, draw(st.sampled_from(HEADERS))])), *lines[number:]]


def retype(draw, lines):
    number = at(draw, lines)
    key = (lines or [""])[number].partition("=")[0]
    return [*lines[:number], f"{key}= {draw(st.sampled_from(SCALARS))}", *lines[number + 1 :]]


def rename(draw, lines):
    number = at(draw, lines)
    value = (lines or [""])[number].partition("=")[2]
    return [*lines[:number], f"{draw(st.sampled_from(KEYS))} ={value}", *lines[number + 1 :]]


def scramble(draw, lines):
    if not lines:
        return lines
    number = at(draw, lines)
    line = lines[number]
    where = draw(st.integers(min_value=0, max_value=len(line)))
    what = draw(st.sampled_from(list("\"'[]{}=.,#- \\\tx5\u00e9\u6f22\x00\x7f\r\x0b")))
    keep = draw(st.booleans())
    return [*lines[:number], line[:where] + what + line[where + (not keep) :], *lines[number + 1 :]]


def retable(draw, lines):
    headers = [number for number, line in enumerate(lines) if line.startswith("[")]
    if not headers:
        return lines
    number = draw(st.sampled_from(headers))
    return [*lines[:number], draw(st.sampled_from(HEADERS)), *lines[number + 1 :]]


MUTATIONS = [drop, duplicate, swap, insert, retype, rename, scramble, retable]


FEW, MANY = (
    settings(max_examples=number, deadline=None, suppress_health_check=list(HealthCheck)) for number in (300, 10_000)
)


@FEW
@given(text=mutated())
@example(text="a = 1\r")
def test_a_mutated_config_has_a_verdict_that_is_explained(public, text):
    assert_agreement(text, public)


@pytest.mark.slow
@MANY
@given(text=mutated())
def test_each_of_many_mutated_configs_has_a_verdict_that_is_explained(public, text):
    assert_agreement(text, public)


@st.composite
def urls(draw):
    schemes = ["", "https:", "http://", "ssh://", "git:", "git+ssh://", "https://", "git@", "1", "GIT://"]
    return draw(st.sampled_from(schemes)) + draw(st.text(alphabet="ab1.:/@?#[]\\ %-+_~^|<x0\t\x00", max_size=9))


@FEW
@given(url=urls())
@example(url="ssh://@")
@example(url="ssh://:@")
@example(url="ssh://:@?")
@example(url="ssh://@#a")
@example(url="ssh://@/")
@example(url="ssh://a@?")
@example(url="ssh://0:\\")
def test_a_git_url_has_the_verdict_of_the_public_parser(public, url):
    assert_same_verdict(url, public)


@pytest.mark.slow
@MANY
@given(url=urls())
def test_each_of_many_git_urls_has_the_verdict_of_the_public_parser(public, url):
    assert_same_verdict(url, public)


def assert_same_verdict(url, public):
    spelled = url.replace("\\", "\\\\").replace("\t", "\\t").replace("\x00", "\\u0000")
    text = document("edition-5", "general", "upstream", f'"{spelled}"')
    assert (ours(text) is None) == (public(text) is None)
