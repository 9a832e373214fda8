"""The formats of a report: for people, for programs, for code scanning and for GitHub."""

import hashlib
import json
import subprocess
import tarfile

import click
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.config.text import underline
from builder.errors import Problem, Span
from builder.lint.findings import CheckReport, Located, all_to_text, locate, to_github, to_json, to_sarif, to_text
from tests import needs


def span(line, column, end_column, end_line=None):
    return Span(line=line, column=column, end_line=end_line or line, end_column=end_column)


def problem(code="B010", severity="error", message="unknown key 'minvr'", **more):
    return Problem(code=code, severity=severity, message=message, **more)


LINES = ["[general]", 'minvr = "2.12"']
FOUND = locate(
    "build.toml",
    problem(key=("general", "minvr"), span=span(2, 1, 6), help="did you mean 'minver'?"),
    LINES,
)
WARNING = locate("build.toml", problem("B119", "warning", "it is empty", span=span(1, 1, 10)), LINES)
ELSEWHERE = Located(
    file="torch-ext/relu/__init__.py",
    problem=problem("B120", "note", "first\nsecond", span=span(3, 2, 4, end_line=4)),
    line="x = 1",
)
NOWHERE = Located(file="build.toml", problem=problem("B001", "error", "cannot read it"))
REPORT = CheckReport.of("build.toml", 5, [ELSEWHERE, FOUND, WARNING, NOWHERE])


def test_problems_are_sorted_by_position_and_those_of_the_config_come_first():
    assert [located.problem.code for located in REPORT.found] == ["B001", "B119", "B010", "B120"]


def test_a_problem_that_is_found_twice_is_reported_once():
    assert len(CheckReport.of("build.toml", 5, [FOUND, FOUND]).found) == 1


def test_the_text_quotes_the_line_with_a_caret_and_ends_with_a_count():
    assert to_text(CheckReport.of("build.toml", 5, [FOUND, WARNING])) == (
        "warning[B119]: it is empty\n"
        "  --> build.toml:1:1\n"
        "  1 | [general]\n"
        "    | ^^^^^^^^^\n"
        "\n"
        "error[B010]: unknown key 'minvr'\n"
        "  --> build.toml:2:1 (general.minvr)\n"
        '  2 | minvr = "2.12"\n'
        "    | ^^^^^\n"
        "  help: did you mean 'minver'?\n"
        "\n"
        "build.toml: found 1 error, 1 warning; `builder check --explain B010` says more\n"
    )


def test_errors_are_next_to_the_summary_and_many_notes_of_one_code_are_folded():
    notes = [
        Located(file="build.toml", problem=problem("B115", "note", "a glob", span=span(line, 1, 2)), line="x = 1")
        for line in range(1, 6)
    ]
    report = CheckReport.of("build.toml", 5, [FOUND, WARNING, ELSEWHERE, *notes])
    shown = to_text(report)
    assert [line.partition(":")[0] for line in shown.splitlines() if "[B" in line] == [
        *("note[B115]", "note[B120]", "warning[B119]", "error[B010]")
    ]
    assert shown.count("and 4 more of B115: --all shows them") == 1
    assert to_text(report, every=True).count("note[B115]") == 5
    assert "1 error, 1 warning, 6 notes" in shown
    few = CheckReport.of("build.toml", 5, notes[:3])
    assert to_text(few).count("note[B115]") == 3
    assert all_to_text([report, few]).count("note[B115]") == 4


def test_the_text_of_a_clean_report_is_one_line():
    assert to_text(CheckReport.of("build.toml", 5, [])) == "build.toml: no problems\n"


def test_color_adds_nothing_but_color():
    assert click.unstyle(to_text(REPORT, color=True)) == to_text(REPORT)
    assert to_text(REPORT, color=True) != to_text(REPORT)


def test_strict_makes_errors_of_warnings_and_leaves_notes():
    strict = REPORT.strict()
    assert [strict.count(severity) for severity in ("error", "warning", "note")] == [3, 0, 1]


def test_the_json_has_the_shape_that_programs_rely_on():
    document = json.loads(to_json(REPORT))
    assert (document["file"], document["edition"]) == ("build.toml", 5)
    assert document["problems"][2] == {
        "severity": "error",
        "code": "B010",
        "message": "unknown key 'minvr'",
        "key": "general.minvr",
        "line": 2,
        "column": 1,
        "end_line": 2,
        "end_column": 6,
        "help": "did you mean 'minver'?",
    }
    assert document["problems"][3]["file"] == "torch-ext/relu/__init__.py"


def test_github_gets_one_command_for_each_problem_with_nothing_unescaped():
    hostile = problem(message="50% off\n::stop::", span=span(1, 2, 3))
    shown = to_github(CheckReport.of("a,b:c.toml", 5, [Located(file="a,b:c.toml", problem=hostile)]))
    assert shown == (
        "::error title=builder B010,file=a%2Cb%3Ac.toml,line=1,endLine=1,col=2,endColumn=3::50%25 off%0A::stop::\n"
    )


def test_github_gets_no_columns_for_a_range_of_lines():
    shown = to_github(CheckReport.of("x", 5, [ELSEWHERE]))
    assert "line=3,endLine=4::" in shown


# --- quoting a line ---


@pytest.mark.parametrize(
    ("line", "column", "end", "shown", "carets"),
    [
        pytest.param("abc", 2, 3, "abc", " ^", id="one letter"),
        pytest.param("\tab", 2, 4, "    ab", "    ^^", id="tab"),
        pytest.param("é = 1", 1, 2, "é = 1", "^", id="accent"),
        pytest.param("日 = 1", 1, 2, "日 = 1", "^^", id="wide"),
        pytest.param("日 = 1", 5, 6, "日 = 1", "     ^", id="after wide"),
        pytest.param("a\x1b[31m", 2, 3, "a\\u001b[31m", " ^^^^^^", id="escape sequence"),
        pytest.param("abc", 4, 4, "abc", "   ^", id="end of line"),
        pytest.param("", 1, 1, "", "^", id="empty line"),
    ],
)
def test_a_caret_stands_under_what_is_shown(line, column, end, shown, carets):
    assert underline(line, column, end) == (shown, carets)


def test_a_long_line_is_cut_around_the_caret():
    shown, carets = underline("x" * 5000 + "HERE" + "y" * 5000, 5001, 5005)
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert shown[carets.index("^") : len(carets)] == "HERE"
    assert len(shown) < 200


@given(st.text(st.characters(blacklist_characters="\n\r"), max_size=400), st.integers(0, 450), st.integers(0, 60))
def test_any_line_can_be_quoted_without_a_character_that_drives_a_terminal(line, start, length):
    shown, carets = underline(line, start + 1, start + length + 1)
    assert shown.isprintable()
    assert set(carets) <= {" ", "^"}
    assert "^" in carets


@given(st.text(), st.text(), st.lists(st.text() | st.integers(0, 99), max_size=3))
def test_any_problem_can_be_shown_in_every_format(message, file, key):
    found = Located(file=file, problem=problem(message=message, key=tuple(key), span=span(1, 1, 2)), line="a = 1")
    report = CheckReport.of(file, None, [found])
    assert json.loads(to_json(report))["problems"][0]["message"] == message
    json.loads(to_sarif(report))
    assert to_github(report).count("\n") == 1
    assert all(line.isprintable() for line in to_text(report).split("\n"))


# --- SARIF ---

SUBSET = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": {"$ref": "#/$defs/run"}},
    },
    "additionalProperties": False,
    "$defs": {
        "message": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
        "index": {"type": "integer", "minimum": 0},
        "number": {"type": "integer", "minimum": 1},
        "run": {
            "type": "object",
            "required": ["tool", "results"],
            "properties": {
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "tool": {
                    "type": "object",
                    "required": ["driver"],
                    "properties": {"driver": {"type": "object", "required": ["name", "rules"]}},
                },
                "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
            },
        },
        "result": {
            "type": "object",
            "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
            "properties": {
                "ruleIndex": {"$ref": "#/$defs/index"},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "message": {"$ref": "#/$defs/message"},
                "locations": {"type": "array", "items": {"$ref": "#/$defs/location"}},
            },
        },
        "location": {
            "type": "object",
            "required": ["physicalLocation"],
            "properties": {
                "physicalLocation": {
                    "type": "object",
                    "required": ["artifactLocation"],
                    "properties": {
                        "artifactLocation": {"properties": {"uri": {"type": "string", "format": "uri-reference"}}},
                        "region": {
                            "additionalProperties": False,
                            "properties": {
                                name: {"$ref": "#/$defs/number"}
                                for name in ("startLine", "startColumn", "endLine", "endColumn")
                            },
                        },
                    },
                }
            },
        },
    },
}
"""What the standard asks of the parts that a report uses; the public schema itself is used where there is a network."""


def test_the_sarif_has_the_parts_that_the_standard_asks_for():
    document = json.loads(to_sarif(REPORT))
    jsonschema.validate(document, SUBSET, cls=jsonschema.Draft202012Validator)
    (only,) = document["runs"]
    rules = only["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in only["results"]] == ["B001", "B119", "B010", "B120"]
    assert [result["level"] for result in only["results"]] == ["error", "warning", "error", "note"]


def test_a_file_name_becomes_a_uri():
    found = Located(file="a b/ü.toml", problem=problem(span=span(1, 1, 2)))
    (result,) = json.loads(to_sarif(CheckReport.of("a b/ü.toml", 5, [found])))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b/%C3%BC.toml"
    assert place["region"] == {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 2}


PUBLIC = "@microsoft/jest-sarif@1.0.0-beta.0"
SCHEMA = "package/lib/schemas/sarif-2.1.0-rtm.5.json"
DIGEST = "2d99159ae54a3eea97f81781cff48780548657c35949f4b7f25e99a2ba4de4f8"


@pytest.mark.network
@needs.only_with("npm")  # it brings the package that has the schema
def test_the_sarif_validates_against_the_public_schema(tmp_path):
    subprocess.run(["npm", "pack", "--silent", PUBLIC], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    (package,) = tmp_path.glob("*.tgz")
    with tarfile.open(package) as archive:
        content = archive.extractfile(SCHEMA).read()
    assert hashlib.sha256(content).hexdigest() == DIGEST
    schema = json.loads(content)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    for report in (REPORT, REPORT.strict(), CheckReport.of("build.toml", None, [])):
        validator(schema, format_checker=validator.FORMAT_CHECKER).validate(json.loads(to_sarif(report)))
    broken = json.loads(to_sarif(REPORT))
    del broken["runs"][0]["tool"]["driver"]["name"]
    with pytest.raises(jsonschema.ValidationError, match="'name' is a required property"):
        validator(schema).validate(broken)
