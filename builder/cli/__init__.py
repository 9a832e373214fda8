"""The command line: a table of commands, each loaded when it is called."""

import importlib
import sys
from typing import Any

import click

from builder import __version__
from builder.errors import BuilderError

COMMANDS = {
    "audit": "Check wheels: ABI, layout, architectures.",
    "build": "Build the wheels of a kernel.",
    "bundle": "Lay wheels out for the hub.",
    "check": "Find what is wrong with a kernel before it is built.",
    "doctor": "Show this machine, its toolchains and the cells it can build.",
    "index": "Make a static package index of wheels.",
    "init": "Start a new kernel that builds.",
    "matrix": "Show the cells of a kernel.",
    "pins": "Maintain the pinned wheels that builds use.",
    "publish": "Publish an index or a hub layout.",
    "render": "Show or write the CMake project of a kernel.",
    "schema": "Print the JSON Schema of a build.toml.",
    "store": "List, verify and clean the store.",
    "update": "Rewrite a build.toml to the current edition.",
    "why": "Say why a cell would be built again.",
}
"""Name of each command and its one line of help; `builder.cli.<name>` has it as `command`."""


class _Commands(click.Group):
    """A group whose commands are imported when asked for: `--help` imports none."""

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


def _suggestion(name: str) -> str:
    import difflib  # noqa: PLC0415  only a mistake needs it

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="builder")
def cli() -> None:
    """Turn a GPU kernel's build.toml into reproducible wheels."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit; the only place that turns an error into an exit code."""
    sys.exit(run(argv))


def run(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        result: Any = cli.main(args=argv, prog_name="builder", standalone_mode=False)
    except BuilderError as error:
        _show(error)
        return error.exit_code
    except click.exceptions.Abort:
        click.echo("interrupted", err=True)
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of stdout is gone, as in `builder matrix | head`
        return 0
    return result if isinstance(result, int) else 0


def _show(error: BuilderError) -> None:
    text = str(error)
    click.echo(text if text.startswith(("error", "warning")) else f"error: {text}", err=True)
