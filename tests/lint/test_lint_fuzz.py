"""No config, however broken, gets anything but a report: no traceback, and no place outside the text."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import lint
from builder.config import update
from builder.config.text import Source
from builder.errors import BuilderError
from builder.lint import findings as formats
from tests.paths import TESTS

VALID = sorted((TESTS / "data" / "config" / "valid").glob("*.toml"))
TEXTS = [path.read_text(encoding="utf-8-sig") for path in VALID]
VALUES = st.sampled_from(
    ['""', '"x"', "1", "-1", "1.5", "true", "[]", "{}", '["x"]', "[[1]]", "{ a = 1 }", "1979-05-27", "07:32:00", "nan",
     '"\\u0000"', '"é\\u202e"', '["cpu", "cpu"]', '["3.5"]', '["gfx1"]', '"99.9"', "'../x'", '["**/*"]', '["/"]', "["]
)  # fmt: skip


STARTS = st.sampled_from(["x", '""', "minver", "a.b", "[kernel.k]", "[[x]]", "#", " "])


@st.composite
def mutated(draw):
    """Take a valid config and drop, repeat, exchange, cut, rename or retype some of its lines."""
    lines = draw(st.sampled_from(TEXTS)).split("\n")
    for _ in range(draw(st.integers(1, 4))):
        here = draw(st.integers(0, len(lines) - 1))
        there = draw(st.integers(0, len(lines) - 1))
        match draw(st.integers(0, 6)):
            case 0 if len(lines) > 1:
                del lines[here]
            case 1:
                lines.insert(there, lines[here])
            case 2:
                lines[here], lines[there] = lines[there], lines[here]
            case 3:
                lines[here] = lines[here][: draw(st.integers(0, len(lines[here])))]
            case 4:
                lines[here] = draw(STARTS) + lines[here]
            case 5:
                lines[here] = f"{lines[here].split('=')[0]}= {draw(VALUES)}"
            case _:
                lines.insert(here, draw(st.text(max_size=12)))
    return "\n".join(lines)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("kernel")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(config=mutated())
def test_any_config_gets_a_report_in_every_format(root, config):
    (root / "build.toml").write_bytes(config.encode("utf-8", "surrogatepass"))
    report = lint.inspect(root)
    lines = config.replace("\r\n", "\n").split("\n")
    for located in report.found:
        span = located.problem.span
        if located.file == report.file and span is not None:
            assert 1 <= span.line <= span.end_line <= len(lines)
            assert 1 <= span.column <= len(lines[span.line - 1]) + 1
    assert len(json.loads(formats.to_json(report))["problems"]) == len(report.found)
    assert len(json.loads(formats.to_sarif(report))["runs"][0]["results"]) == len(report.found)
    assert formats.to_github(report).count("\n") == len(report.found)
    assert formats.to_text(report).endswith("\n")


@settings(max_examples=300, deadline=None)
@given(config=mutated())
def test_any_config_is_updated_to_one_that_is_not_updated_again_or_is_refused(config):
    try:
        after = update.rewrite(Source(name="build.toml", text=config), license="MIT")
    except BuilderError:
        return
    assert update.rewrite(Source(name="build.toml", text=after), license="MIT") == after
