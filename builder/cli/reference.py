"""Write the reference page of the command line from the help of the commands."""

import importlib
from collections.abc import Iterator

import click

from builder import terminal
from builder.cli import COMMANDS, help_text

_WIDTH = 100
_HEAD = """# The command line

This page is generated: `python -m builder.cli.reference > docs/cli.md`. `builder COMMAND --help` prints the same.

Results go to stdout, progress and diagnostics to stderr; `--json` makes stdout one JSON document. Exit codes: 0 done;
1 a comparison or a test failed, or a time limit came; 2 config or usage; 3 nothing selected, or something would be
overwritten; 4 a tool failed; 5 the audit failed; 6 publishing failed; 70 a mistake of builder itself;
130 interrupted.
"""


def page() -> str:
    """Return the page as Markdown."""
    commands = {
        name: importlib.import_module(f"builder.cli.{name.replace('-', '_')}").command for name in sorted(COMMANDS)
    }
    sections = (section for name, command in commands.items() for section in _sections(f"builder {name}", command))
    return "\n".join((_HEAD, _block(help_text()), *sections))


def _sections(name: str, command: click.Command) -> Iterator[str]:
    """Yield the help of a command and of its subcommands."""
    context = click.Context(command, info_name=name, terminal_width=_WIDTH, max_content_width=_WIDTH)
    context.help_option_names = ["-h", "--help"]
    yield f"## `{name}`\n\n{_block(command.get_help(context))}"
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            if inner is not None:
                yield from _sections(f"{name} {part}", inner)


def _block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```\n"


if __name__ == "__main__":
    terminal.document(page())
