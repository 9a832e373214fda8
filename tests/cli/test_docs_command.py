"""The documentation that is installed with the command, and the one text of it for coding agents."""

import pytest

from builder.cli import COMMANDS, docs, reference, run
from tests.paths import ROOT


def test_pages_are_named_and_shown_as_they_are(capsys):
    assert run(["docs"]) == 0
    names = capsys.readouterr().out.splitlines()
    assert {"tutorial.md", "howto/backends.md", "errors/B129.md"} <= set(names)
    for spelled in ("howto/backends.md", "howto/backends"):
        assert run(["docs", spelled]) == 0
        assert capsys.readouterr().out == (ROOT / "docs/howto/backends.md").read_text(encoding="utf-8")


def test_the_text_for_agents_is_made_of_the_pages_and_of_the_help_of_every_command(capsys):
    assert run(["docs", "--for-agents"]) == 0
    text = capsys.readouterr().out
    for name in docs.FOR_AGENTS:
        assert f"<!-- docs/{name} -->" in text
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") in text
    assert reference.page() in text
    assert all(f"## `builder {name}`" in text for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tutorail",), "did you mean 'tutorial.md'?"),
        (("../README",), "names all pages"),
        (("/etc/passwd",), "names all pages"),
        (("tutorial", "--for-agents"), "has pages of its own"),
    ],
)
def test_what_is_no_page_is_said(arguments, message, capsys):
    assert run(["docs", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_the_wheel_has_the_pages():
    assert 'docs = "builder/_resources/docs"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
