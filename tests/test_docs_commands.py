"""What a page tells a reader to type exists: commands, their parts and options; blocks marked `bash` are run."""

import re

import click
import pytest

from builder.cli.group import cli
from tests.integration import test_howto
from tests.paths import ROOT

RUN = {"README.md", "docs/index.md", "docs/tutorial.md", *(f"docs/{name}" for name in test_howto.SAYS)}
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md")
    for path in ROOT.glob(pattern)
    if path.name != "cli.md"  # it is generated from the commands
)
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:^|[\s|&(])builder (?P<arguments>[a-z-]+\b[^|&)\n]*)")
INLINE = re.compile(r"`(builder [^`\n]*)`")


TEXTS = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
BLOCKS = {page: [found.group("language", "text") for found in BLOCK.finditer(text)] for page, text in TEXTS.items()}


def commands(page):
    """Yield the arguments of `builder` in blocks for a shell, in lines that show a shell, and within the text."""
    lines = [
        line.partition(" #")[0]
        for language, text in BLOCKS[page]
        for line in text.replace("\\\n", " ").splitlines()
        if language in {"bash", "sh", "console"} or line.startswith(("$ ", "builder "))
    ]
    lines += INLINE.findall(BLOCK.sub("", TEXTS[page]))
    yield from (found["arguments"] for line in lines for found in COMMAND.finditer(line.replace("$(", "| ")))


def unknown(arguments):
    """Return what the command line does not know of these arguments; it is empty when all is known."""
    words = arguments.split()
    command = cli
    while isinstance(command, click.Group):
        name = words.pop(0) if words else ""
        found = command.get_command(click.Context(command), name)
        if found is None:
            return name if not name.startswith("-") else ""
        command = found
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
    ours = words[: words.index("--")] if "--" in words else words
    options = [found[0] for word in ours if (found := re.match(r"--?[a-z][a-z-]*", word))]
    return " ".join(option for option in options if option not in known)


def test_each_block_marked_bash_is_on_a_page_that_a_test_runs():
    assert {page for page in PAGES if any(language == "bash" for language, _ in BLOCKS[page])} == RUN


@pytest.mark.parametrize("page", [page for page in PAGES if [*commands(page)]])
def test_the_commands_of_a_page_exist_with_their_options(page):
    assert [f"{arguments}: {found}" for arguments in commands(page) if (found := unknown(arguments))] == []


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("matrix examples/relu --explain", ""),
        ("pins update --help", ""),
        ("test kernel -- -k some --lf", ""),
        ("matrixx --explain", "matrixx"),
        ("build --explain --set all", "--explain"),
    ],
)
def test_what_the_command_line_does_not_know_is_found(arguments, found):
    assert unknown(arguments) == found
