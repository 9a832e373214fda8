import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import toml as tomllib
from builder.config import _positions
from builder.config.text import LARGEST, Source, dotted
from builder.errors import ConfigError, Problem
from builder.kernel import load
from builder.lint.findings import CheckReport, locate, to_text
from tests.config.texts import GENERAL, refusal_of, source


def cut(source, span):
    """Return the text of a span."""
    starts = source.index.starts
    return source.text[starts[span.line - 1] + span.column - 1 : starts[span.end_line - 1] + span.end_column - 1]


def flat(value, path=()):
    """Yield each path of a document with its value."""
    if path:
        yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in items:
        yield from flat(entry, (*path, key))


# A generator of TOML, in every spelling of keys, values and tables, with what it must parse to left to the parser.

BARE = st.text(alphabet="ab-_9", min_size=1, max_size=3)
TEXT = st.text(
    alphabet=st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="'\"\\"), max_size=5
).filter(lambda text: text.isprintable())
KEY = st.one_of(
    BARE,
    TEXT.map(lambda text: f'"{text}"'),
    TEXT.map(lambda text: f"'{text}'"),
    st.sampled_from([r'"\u00e9"', r'"a\"b"', r'"#"', '"[x]"', "'='", r'"\\"']),
)
DOTTED = st.lists(KEY, min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from([".", " . ", "\t.\t"]).map(lambda dot: dot.join(parts))
)
SCALAR = st.one_of(
    st.integers(min_value=-10, max_value=10**12).map(str),
    TEXT.map(lambda text: f'"{text}"'),
    TEXT.map(lambda text: f"'{text}'"),
    st.sampled_from(
        [
            "true", "1.5", "-inf", "1979-05-27", "0xff",
            "1979-05-27 07:32:00", "1979-05-27T07:32:00.5+01:00", "07:32:00",
            r'"\" # ]"', r'"\\"', '""', "''", '"""a\n"b""c"""', '""""""', '"""a"""""', "'''\nx'y''z'''", "''''a''''",
            r'"""\"""" # no comment"""', '"""a\\\n   b"""', "1_000", "1e5",
        ]
    ),
)  # fmt: skip
GAP = st.sampled_from(["", " ", "\n", " # a ] comment\n", "\n\n\t"])


def values(depth):
    if depth == 0:
        return SCALAR
    item = values(depth - 1)
    array = st.tuples(st.lists(st.tuples(GAP, item, GAP), max_size=3), st.sampled_from(["", ","])).map(
        lambda made: "[" + ",".join(map("".join, made[0])) + (made[1] if made[0] else "") + "]"
    )
    pair = st.tuples(DOTTED, item).map(lambda made: f"{made[0]} = {made[1]}")
    table = st.lists(pair, max_size=3).map(lambda pairs: "{ " + ", ".join(pairs) + " }")
    return st.one_of(SCALAR, array, table)


LINE = st.one_of(
    st.tuples(st.sampled_from(["", "  ", "\t"]), DOTTED, st.sampled_from(["=", " = "]), values(3)).map("".join),
    DOTTED.map(lambda key: f"[{key}]"),
    DOTTED.map(lambda key: f"[ {key} ] # comment"),
    BARE.map(lambda key: f"[[{key}]]"),
    st.sampled_from(["", "# a = 1", "   # [x]"]),
)


@st.composite
def documents(draw):
    """Build a document line by line, leaving out the lines that would make it invalid."""
    text = ""
    for line in draw(st.lists(LINE, max_size=8)):
        longer = f"{text}{line}\n"
        try:
            tomllib.loads(longer)
        except ValueError:
            continue
        text = longer
    return text


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=documents(), ends=st.sampled_from(["\n", "\r\n"]))
def test_positions_agree_with_the_parser(text, ends):
    given_source = source(text.replace("\n", ends))
    document = given_source.table()
    paths = dict(flat(document))
    assert set(given_source.index.entries) == set(paths)
    for path, value in paths.items():
        if not isinstance(path[-1], int):
            spelled = cut(given_source, given_source.span(path, key=True))
            assert tomllib.loads(f"{spelled} = 0") == {path[-1]: 0}
        spelled = cut(given_source, given_source.span(path))
        if not isinstance(value, dict) and not spelled.startswith("[["):
            assert tomllib.loads(f"value = {spelled}") == {"value": value}


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.one_of(st.text(alphabet="ab=[]{}\"'\\.,# \n\t1-\u00e9\x00", max_size=40), st.text(max_size=30)))
def test_any_text_is_parsed_or_refused_with_a_position_in_it(text):
    made = source(text)
    refused = refusal_of(made.table)
    if refused is None:
        assert made.table() == tomllib.loads(made.text)
    for problem in refused.problems if refused else ():
        assert 1 <= problem.span.line <= made.text.count("\n") + 1
        assert 1 <= problem.span.column <= len(made.line(problem.span.line)) + 1
        assert all(line.replace("\t", " ").isprintable() for line in made.render([problem]).splitlines())


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        pytest.param("a = MIT\n", "'MIT' is not a value", 1, 5, id="a bare word"),
        pytest.param("a = True\n", "'True' is not a value", 1, 5, id="a capital boolean"),
        pytest.param("a =\n", "a value is missing", 1, 4, id="no value"),
        pytest.param('a = "x\nb = 1\n', "a string is not closed", 1, 7, id="an open string"),
        pytest.param('a = """x\nb = 1\n', "a string is not closed", 2, 6, id="an open string of several lines"),
        pytest.param("a = [1, 2\n", "unclosed array", 1, 10, id="an open array"),
        pytest.param("a\n", "a key without '='", 1, 2, id="a key alone"),
        pytest.param('a = "C:\\dir"\n', "unescaped '\\' in a string", 1, 8, id="a backslash"),
        pytest.param("a = 1\nb = 2\na = 3\n", "'a' is given twice", 3, 1, id="a key twice"),
        pytest.param("[a]\n[b]\n[a]\n", "'a' is given twice", 3, 2, id="a table twice"),
        pytest.param("[[a]]\n[a]\n", "'a' is given twice", 2, 2, id="a table and an array of tables"),
        pytest.param("a = { b = 1, b = 2 }\n", "'b' is given twice", 1, 14, id="a key of an inline table twice"),
        pytest.param("a.b = 1\n[a]\n", "a key or table is given twice", 2, 3, id="a dotted key and a table"),
        pytest.param('a = "\x00"\n', "illegal character '\\x00'", 1, 6, id="NUL"),
        pytest.param("b = 1\na = " + "9" * 5000 + "\n", "an integer of too many digits", 2, 5, id="a long integer"),
        pytest.param('a = "\\ud800"\n', "not a Unicode scalar value", 1, 6, id="a lone surrogate"),
        pytest.param("a = " + "[" * 10_000 + "\n", "more than 64 levels of nesting", 1, 69, id="nested arrays"),
        pytest.param("a = " + "{a=" * 10_000 + "\n", "more than 64 levels of nesting", 1, 197, id="nested tables"),
        pytest.param(".".join(["a"] * 10_000) + " = 1\n", "more than 64 levels", 1, 129, id="a key of many parts"),
        pytest.param("[" + ".".join(["a"] * 10_000) + "]\n", "more than 64 levels", 1, 130, id="a table of many parts"),
        pytest.param("a = [" + "1," * 60_000 + "]\n", "more than 50,000 values", 1, None, id="too many values"),
        pytest.param("a = " + "[" * 65 + "]" * 65 + "\n", "more than 64 levels", 1, 69, id="one level too deep"),
        pytest.param(".".join(["a"] * 65) + " = 1\n", "more than 64 levels", 1, 129, id="a key of one part too many"),
    ],
)
def test_a_text_that_is_not_toml_is_refused_where_it_goes_wrong(text, message, line, column):
    with pytest.raises(ConfigError) as raised:
        source(text).table()
    problem = raised.value.problems[0]
    assert message in problem.message
    assert (problem.span.line, column and problem.span.column) == (line, column)


def test_the_places_of_a_good_config_are_not_searched_for(tmp_path):
    (tmp_path / "build.toml").write_text(f"{GENERAL}[torch-noarch]\n", encoding="utf-8")
    before = _positions.scan.cache_info()
    load(tmp_path)
    assert _positions.scan.cache_info() == before


def test_every_repeated_key_is_reported():
    with pytest.raises(ConfigError) as raised:
        source("a = 1\nb = 1\na = 2\nb = 2\n").table()
    assert [problem.span.line for problem in raised.value.problems] == [3, 4]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(lambda _: None, "no such file", id="missing"),
        pytest.param(lambda path: path.mkdir(), "not a regular file", id="directory"),
        pytest.param(os.mkfifo, "not a regular file", id="fifo"),
        pytest.param(lambda path: path.symlink_to(path), "too many levels of symbolic links", id="loop"),
        pytest.param(lambda path: path.symlink_to("nowhere"), "no such file", id="dangling"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), "not a regular file", id="device"),
        pytest.param(
            lambda path: (path.touch(), os.truncate(path, 100 * 1024 * 1024)),
            f"larger than {LARGEST // 1024**2} MiB",
            id="large",
        ),
    ],
)
def test_a_file_that_is_none_is_refused_at_once(tmp_path, make, reason):
    make(tmp_path / "build.toml")
    start = time.perf_counter()
    with pytest.raises(ConfigError, match=f"cannot read 'build.toml' in .*: {reason}"):
        Source.read(tmp_path / "build.toml")
    assert time.perf_counter() - start < 30  # a pipe that is read has no end


def test_a_name_with_nul_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot read"):
        Source.read(tmp_path / "a\0b")


def test_bytes_that_are_not_utf_8_are_shown_where_they_are(tmp_path):
    path = tmp_path / "build.toml"
    path.write_bytes('[general]\nname = "é'.encode() + b"\xff\xfe")
    with pytest.raises(ConfigError) as raised:
        Source.read(path)
    (problem,) = raised.value.problems
    assert problem.message == "the file is not UTF-8: byte 0xff"
    assert (problem.span.line, problem.span.column) == (2, 10)


def test_a_byte_order_mark_and_crlf_do_not_move_columns():
    made_source = source("\ufeffname = 1\r\nother = 2\r\n")
    assert made_source.table() == {"name": 1, "other": 2}
    assert made_source.span(("name",), key=True).column == 1
    assert cut(made_source, made_source.span(("other",))) == "2"


def test_a_lone_surrogate_can_be_shown():
    rendered = source('a = "\ud800" b').render([Problem(code="B002", severity="error", message="x")])
    assert rendered.encode("utf-8")
    with pytest.raises(ConfigError) as raised:
        source('a = "\ud800" b').table()
    assert str(raised.value).encode("utf-8")


def test_an_absent_key_is_shown_at_its_table():
    made_source = source("[general]\nname = 1\n[kernel.a]\n")
    assert made_source.span(("general", "version")).line == 1
    assert made_source.span(("kernel", "a", "src", 3)).line == 3
    assert made_source.span(("torch",)) is None


def test_the_caret_stands_under_the_value():
    text = '\tname = "漢字é", 1\n'
    problem = source(text).problem("B001", "what", path=())
    span = source(text).span_of(8, 13)
    shown = source(text).render([Problem(code="B001", severity="error", message="what", span=span)])
    assert problem.span is None
    assert shown.splitlines()[2:] == ['  1 |     name = "漢字é", 1', "    |            ^^^^^^^"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('key = "' + "x" * 500 + '"', id="a long line"),
        pytest.param('\tkey = "a"', id="a tab"),
        pytest.param('key = "日本\x1b"', id="wide and hidden"),
        pytest.param('key = """\na"""', id="several lines"),
    ],
)
def test_a_build_shows_a_problem_as_a_check_does(text):
    made = source(text)
    problem = made.problem("B012", "first\nsecond", path=("key",), help="one\ntwo")
    report = CheckReport.of(made.name, None, [locate(made.name, problem, text.split("\n"))])
    assert to_text(report).startswith(f"{made.render([problem])}\n\n")


def test_a_long_line_is_cut_around_the_caret():
    text = "a = [" + "1, " * 10_000 + "x]\n"
    with pytest.raises(ConfigError) as raised:
        source(text).table()
    quoted, carets = str(raised.value).splitlines()[2:4]
    assert len(quoted) < 140
    assert quoted[carets.index("^")] == "x"


def test_a_control_character_cannot_drive_a_terminal():
    with pytest.raises(ConfigError) as raised:
        source('a = "\x1b[31m"\n').table()
    assert "\x1b" not in str(raised.value)


def test_problems_are_sorted_by_position():
    made_source = source("a = 1\nb = 2\n")
    error = made_source.error(*(made_source.problem("B010", name, path=(name,)) for name in ("b", "a")))
    assert [problem.message for problem in error.problems] == ["a", "b"]


def test_a_path_is_written_as_in_toml():
    assert dotted(("kernel", "a b", "src", 3)) == "kernel.'a b'.src[3]"


def test_the_scan_is_linear():
    best = {}
    for lines in (10_000, 80_000) * 3:
        text = "[torch]\nsrc = [\n" + '  "csrc/some/file.cu", # comment\n' * lines + "]\n"
        start = time.process_time()
        made = source(text)
        best[lines] = min(best.get(lines, 60), time.process_time() - start)
        assert made.span(("torch", "src", 9_999)).line == 10_002
    short, long = best.values()
    assert long < 24 * short  # 8 times as long, if it is linear, and 64 times if it is quadratic


def test_a_folder_whose_name_has_lines_cannot_write_one(tmp_path):
    folder = tmp_path / "x\n::add-mask::y"
    folder.mkdir()
    (folder / "build.toml").write_text("general = 1\n")
    with pytest.raises(ConfigError) as caught:
        load(folder)
    assert not [line for line in str(caught.value).splitlines() if line.startswith("::")]


@pytest.mark.parametrize("text", ["a = 1\n\r\r\n[b]\n", "a = 1\r\r\n", "a = '''\r\r\n'''\n"])
def test_a_carriage_return_that_is_not_of_a_line_end_is_an_error(text):
    with pytest.raises(ConfigError):
        Source(name="build.toml", text=text).table()


def test_line_ends_of_windows_are_line_ends():
    assert Source(name="build.toml", text="a = 1\r\n\r\n[b]\r\nc = '''\r\nx'''\r\n").table() == {
        "a": 1,
        "b": {"c": "x"},
    }
