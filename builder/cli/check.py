"""`builder check`: find what is wrong with a kernel before it is built."""

import os
import sys
from pathlib import Path

import click

from builder import terminal
from builder.cli import completing
from builder.cli.arguments import kernel_argument
from builder.kernel import CONFIG
from builder.lint.report import CheckReport

FORMATS = ("text", "json", "sarif", "github")


def _explain(ctx: click.Context, _: click.Parameter, code: str | None) -> None:
    if code is None:
        return
    from builder.lint.report.pages import page_of  # noqa: PLC0415  only this option needs it

    terminal.out(page_of(code.upper()), end="")
    ctx.exit()


@click.command()
@kernel_argument
@click.option("--strict", is_flag=True, help="Make every warning an error.")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="Format of the report.")
@click.option(
    "--explain",
    metavar="CODE",
    shell_complete=completing.codes,
    expose_value=False,
    is_eager=True,
    callback=_explain,
    help="Explain a code, such as B120.",
)
def command(*, kernel: Path, strict: bool, format_: str) -> int:
    """Find what is wrong with a kernel before it is built: its config, its files, the ops it registers.

    Exits with 2 when there is an error, and with 0 otherwise.
    """
    from builder import lint  # noqa: PLC0415  `--help` needs none of it

    directory = kernel.parent if kernel.name == CONFIG else kernel
    report = lint.inspect(directory)
    report = report.strict() if strict else report
    color = _wants_color()
    shown = _render(report, format_, color=color)
    match format_:
        case "text":
            terminal.out(shown, end="", styled=color)
        case "github":
            terminal.annotations(shown)
        case _:
            terminal.document(shown)
    return 2 if report.refused else 0


def _render(report: CheckReport, format_: str, *, color: bool) -> str:
    """Import the one format that is asked for."""
    from builder.lint.report import github, json, sarif, text  # noqa: PLC0415

    match format_:
        case "json":
            return json.render(report)
        case "sarif":
            return sarif.render(report)
        case "github":
            return github.render(report)
        case _:
            return text.render(report, color=color)


def _wants_color() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout is not None and sys.stdout.isatty())
