"""`builder check`: find what is wrong with a kernel before it is built."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from builder import terminal
from builder.cli import completing, selecting
from builder.cli.selecting import NamedKernels, kernels_argument
from builder.lint.report import CheckReport
from builder.plan import kernels
from builder.plan.kernels import Refusal, SameNameError

FORMATS = ("text", "json", "sarif", "github")


def _explain(ctx: click.Context, _: click.Parameter, code: str | None) -> None:
    if code is None:
        return
    from builder.lint.codes import page_of  # noqa: PLC0415  only this option needs it

    terminal.out(page_of(code.upper()), end="")
    ctx.exit()


@click.command()
@kernels_argument
@click.option("--strict", is_flag=True, help="Make every warning an error.")
@click.option("--all", "every", is_flag=True, help="Show each note, also where many are alike.")
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
def command(*, named: NamedKernels, strict: bool, every: bool, format_: str) -> int:
    """Find what is wrong with kernels before they are built: the config, the files, the ops they register.

    Exits with 2 when there is an error, and with 0 otherwise.
    """
    from builder import lint  # noqa: PLC0415  `--help` needs none of it

    found = {folder: lint.inspect(folder) for folder in named.folders}
    reports = {folder: report.strict() if strict else report for folder, report in found.items()}
    color = _wants_color()
    refused = kernels.load(named.folders)[1] if named.several else ()
    clashes = tuple(each for each in refused if isinstance(each.error, SameNameError))
    shown = _shown(reports, format_, clashes if named.several else None, color=color, every=every)
    match format_:
        case "text":
            terminal.out(shown, end="", styled=color)
        case "github":
            terminal.annotations(shown)
        case _:
            terminal.document(shown)
    return 2 if selecting.say(clashes) or any(report.refused for report in reports.values()) else 0


def _shown(
    reports: Mapping[Path, CheckReport], format_: str, clashes: Sequence[Refusal] | None, *, color: bool, every: bool
) -> str:
    """Return the document of one kernel, or of several, which may clash."""
    from builder.lint.report import documents, text  # noqa: PLC0415  `--help` needs none of it

    all_ = tuple(reports.values())
    match format_:
        case "json" if clashes is not None:
            named = {folder.as_posix(): report for folder, report in reports.items()}
            return documents.all_to_json(named, errors=kernels.texts(clashes))
        case "json":
            return documents.to_json(*all_)
        case "sarif":
            return documents.to_sarif(*all_)
        case "github":
            return "".join(map(documents.to_github, all_))
        case _ if clashes is not None:
            return text.render_all(all_, color=color, every=every)
        case _:
            return text.render(*all_, color=color, every=every)


def _wants_color() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout is not None and sys.stdout.isatty())
