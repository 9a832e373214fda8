"""The group of all commands; the only place that turns an error into an exit code."""

import contextlib
import errno
import importlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import click

from builder import __version__, terminal
from builder.cli import COMMANDS, help_text, screen
from builder.errors import BugError, BuilderError, ToolError
from builder.wording import nearest

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Commands(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"builder.cli.{cmd_name.replace('-', '_')}").command
        command.context_class = screen.HelpContext
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            meant = nearest(args[0], COMMANDS)
            suggestion = f" Did you mean '{meant}'?" if meant else ""
            raise click.UsageError(f"{error.message}{suggestion}", ctx) from None

    def get_help(self, ctx: click.Context) -> str:
        return help_text().rstrip("\n")


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="builder")
def cli() -> None:
    """Turn a GPU kernel's build.toml into reproducible wheels."""


def run(argv: list[str]) -> int:
    """Run the command line and return its exit code."""
    _hold_standard_streams()
    try:
        result: Any = cli.main(args=argv, prog_name="builder", standalone_mode=False)
    except (BuilderError, click.ClickException, click.exceptions.Abort, KeyboardInterrupt, OSError) as error:
        return _report(error)
    except SystemExit:
        if not type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):  # click's wrapper, which has no public name
            raise
        return _report(terminal.ReaderGoneError("nobody reads the help"))  # click noticed it
    except Exception as error:  # noqa: BLE001  a mistake of this program, whatever it is
        return _bug(error)
    return result if isinstance(result, int) else 0


def _report(error: BaseException) -> int:
    """Report the error that ended a command, and return the exit code."""
    match error:
        case terminal.ReaderGoneError() | BrokenPipeError():
            _drop_output()
            code = 0
        case terminal.OutputError():
            _drop_output()
            code = _show(error)
        case BugError():
            code = _show(BugError(error.message, help=_where_to_report()))
        case BuilderError():
            code = _show(error)
        case click.ClickException():
            said = io.StringIO()
            error = _without_hidden(error) if isinstance(error, click.NoSuchOption) else error
            error.show(file=said)
            _say(said.getvalue().rstrip("\n"))
            code = error.exit_code
        case OSError():
            refused = _refused(error)
            code = _bug(error) if refused is None else _report(refused)
        case _:
            _say("interrupted")
            code = 130
    return code


def _without_hidden(error: click.NoSuchOption) -> click.NoSuchOption:
    """Suggest the nearest option of a command, and none that its help does not have."""
    params = () if error.ctx is None else error.ctx.command.params
    shown = [name for each in params if not getattr(each, "hidden", False) for name in each.opts]
    meant = nearest(error.option_name, [name for name in shown if name.startswith("--")])
    return click.NoSuchOption(error.option_name, possibilities=None if meant is None else [meant], ctx=error.ctx)


def _refused(error: OSError) -> BuilderError | None:
    """Return an error that the operating system raised, as a message; None if code raised it."""
    if isinstance(error, FileNotFoundError):
        try:
            Path.cwd()
        except FileNotFoundError:
            return BuilderError("the current folder is not there any more", help="change to one that is")
    if error.filename is not None:
        return file_error(error)
    if error.errno is None:
        return None
    if error.errno in _NO_ROOM:  # click wrote its help
        return terminal.OutputError(f"cannot write: {error.strerror}", help="free the disk")
    return terminal.OutputError(f"the system refused what is needed: {error.strerror}")


def _bug(error: Exception) -> int:
    """Show the traceback of a bug in this program, and say where to report it."""
    import traceback  # noqa: PLC0415  almost never needed

    _say("".join(traceback.format_exception(error)).rstrip())
    said = " ".join(str(error).split())
    message = f"this is a mistake of builder itself: {type(error).__name__}{f': {said}' if said else ''}"
    return _show(BugError(message, help=_where_to_report()))


def _where_to_report() -> str:
    try:
        from builder.ci import workflow  # noqa: PLC0415  almost never needed

        address = workflow.find()
    except Exception:  # noqa: BLE001  what is being reported comes first
        address = None
    where = "to whom you have builder from" if address is None else f"at {address.page}"
    return f"report it {where}, with the traceback above and what you ran"


def file_error(error: OSError) -> ToolError:
    """Turn an error about reading or writing a file into a message."""
    name = error.filename if isinstance(error.filename, str) else os.fsdecode(os.fspath(error.filename))
    return ToolError(
        f"cannot use '{name}': {error.strerror}", help="look at its permissions and at the disk, or name another place"
    )


def _show(error: BuilderError) -> int:
    _say(error.shown)
    return error.exit_code


def _say(text: str) -> None:
    with contextlib.suppress(terminal.OutputError):  # nobody can read the message
        screen.err(text)


def _drop_output() -> None:
    """Redirect stdout to the null device: writing the buffered rest would fail again when Python ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _hold_standard_streams() -> None:
    """Open the standard streams that the parent closed, or the next opened file would get the number of stdout."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # noqa: PERF203  there are three
            os.open(os.devnull, os.O_RDWR)
