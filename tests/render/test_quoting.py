"""What a language reads is what was written."""

import ast
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builder import toml
from builder.render import quoting
from builder.resources import CMAKE

HOSTILE = [
    '"',
    "'",
    "$",
    "${CMAKE_SOURCE_DIR}",
    "$ENV{HOME}",
    "$CACHE{X}",
    "@PROJECT_NAME@",
    ")",
    "(",
    ") message(FATAL_ERROR injected",
    "#comment",
    "#[[bracket]]",
    "[[x]]",
    "a b",
    "\\",
    "a\\b",
    "\\n",
    '\\"',
    "ünïcödé",
    "日本語",
    "\u202e",
    "x" * 20000,
    "`id`",
    "$(id)",
    "{{ name }}",
    "{% raw %}",
    "%s",
]


def read_by_cmake(argument):
    """Return the value of a CMake argument, by the grammar of cmake-language(7)."""
    if not argument.startswith('"'):
        assert re.fullmatch(r'[^\s()#"\\;$@]+', argument), argument
        return argument
    body = argument[1:-1]
    assert argument.endswith('"')
    assert not re.search(r'(?<!\\)(?:\\\\)*"', body), "the quote ends early"
    assert not re.search(r"(?<!\\)(?:\\\\)*\$", body), "a reference is expanded"
    return re.sub(r"\\(.)", r"\1", body, flags=re.DOTALL)


@given(st.text(min_size=1))
@pytest.mark.parametrize("prefix", ["", "-D"])
def test_cmake_reads_back_what_is_accepted(prefix, text):
    whole = prefix + text
    if quoting.why_not_cmake(whole) is None:
        assert read_by_cmake(quoting.cmake(whole)) == whole
    else:
        with pytest.raises(quoting.UnrepresentableError):
            quoting.cmake(whole)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_hostile_text_is_quoted_for_cmake_or_refused(text):
    whole = f"-DX={text}="
    if quoting.why_not_cmake(whole) is None:
        assert read_by_cmake(quoting.cmake(whole)) == whole


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param("a;b", "separates", id="semicolon"),
        pytest.param("a\nb", "control", id="newline"),
        pytest.param("a\x00b", "control", id="null"),
        pytest.param("$<1:x>", "generator", id="generator expression"),
        pytest.param("a[b", "match", id="open bracket"),
        pytest.param("a]b", "match", id="closing bracket"),
        pytest.param("a\\", "backslash", id="backslash at the end"),
        pytest.param("SOURCES", "word", id="keyword"),
        pytest.param("a\x1fb", "control", id="last control character before the space"),
        pytest.param("a\x7fb", "control", id="delete"),
        pytest.param("\ud800", "Unicode", id="first surrogate"),
        pytest.param("\udcff", "Unicode", id="surrogate"),
        pytest.param("\udfff", "Unicode", id="last surrogate"),
        pytest.param("SHELL:-a -b", "SHELL:", id="several flags in one"),
    ],
)
def test_what_cmake_cannot_hold_is_refused_with_the_reason(text, reason):
    assert reason in quoting.why_not_cmake(text)


@pytest.mark.parametrize("text", [" ", "~", "\x80", "\ud7ff", "\ue000", "[a]"], ids=ascii)
def test_what_lies_just_outside_of_what_cmake_cannot_hold_is_accepted(text):
    assert quoting.why_not_cmake(text) is None


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("\x7f")
@example("\u0085")
@example('"""')
def test_toml_reads_back_a_string(text):
    assert toml.loads(f"x = {toml.spelled(text)}") == {"x": text}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_toml_reads_back_a_list(texts):
    assert toml.loads(f"x = {toml.spelled(texts)}") == {"x": texts}


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("\x7f\u2028")
def test_python_reads_back_a_string(text):
    assert ast.literal_eval(quoting.python(text)) == text


def test_every_keyword_of_the_modules_is_refused_as_a_value():
    words = set()
    for path in CMAKE.rglob("*.cmake"):
        for call in re.findall(r"cmake_parse_arguments\(([^)]*)\)", path.read_text(encoding="utf-8")):
            words.update(re.findall(r"(?<![A-Za-z_$])[A-Z][A-Z0-9_]+(?![A-Z_a-z0-9])", call.partition("\n")[2] or call))
    words -= {"PARSE_ARGV"}
    assert not [word for word in words if not quoting.KEYWORDS.fullmatch(word)]
