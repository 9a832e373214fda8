"""The group of all commands, and the only place that turns an error into an exit code."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

from builder import __version__
from builder.cli import COMMANDS, help_text
from builder.errors import BuilderError


class _Commands(click.Group):
    """A group whose commands are imported when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"builder.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(f"{error.message}{_suggestion(args[0])}", ctx) from None

    def get_help(self, ctx: click.Context) -> str:  # noqa: ARG002
        return help_text().rstrip("\n")


def _suggestion(name: str) -> str:
    import difflib  # noqa: PLC0415  only a mistake needs it

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="builder")
def cli() -> None:
    """Turn a GPU kernel's build.toml into reproducible wheels."""


def run(argv: list[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        result: Any = cli.main(args=argv, prog_name="builder", standalone_mode=False)
    except BuilderError as error:
        _show(error)
        return error.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except FileNotFoundError:
        if _has_folder():
            raise
        click.echo("error: the current folder is not there any more\n  help: change to one that is", err=True)
        return 2
    except BrokenPipeError:
        # The reader of stdout is gone, as in `builder matrix | head`; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return result if isinstance(result, int) else 0


def _has_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def _show(error: BuilderError) -> None:
    text = str(error)
    click.echo(text if text.startswith(("error", "warning")) else f"error: {text}", err=True)
