"""`builder check`: find what is wrong with a kernel before it is built."""

import sys

import click

from builder import terminal
from builder.cli import completing, screen, selecting
from builder.cli.selecting import kernels_argument
from builder.plan import kernels
from builder.plan.kernels import NamedKernels, SameNameError

FORMATS = ("text", "json", "sarif", "github")


def _explain(ctx: click.Context, _: click.Parameter, code: str | None) -> None:
    if code is None:
        return
    from builder.lint.findings import page_of  # noqa: PLC0415  only this option needs it

    terminal.out(page_of(code.upper()), end="")
    ctx.exit()


@click.command()
@kernels_argument
@click.option("--strict", is_flag=True, help="Make every warning an error.")
@click.option("--all", "every", is_flag=True, help="Show every note, even if many are alike.")
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
    from builder.lint import findings  # noqa: PLC0415

    reports = {folder: report.strict() if strict else report for folder, report in found.items()}
    all_ = tuple(reports.values())
    refused = kernels.load(named.folders)[1] if named.several else ()
    clashes = tuple(each for each in refused if isinstance(each.error, SameNameError))
    match format_:
        case "text":
            color = screen.has_color(sys.stdout)
            if named.several:
                shown = findings.all_to_text(all_, color=color, every=every)
            else:
                shown = findings.to_text(*all_, color=color, every=every)
            terminal.out(shown, end="", styled=color)
        case "github":
            terminal.commands("".join(map(findings.to_github, all_)), result=True)
        case "sarif":
            terminal.document(findings.to_sarif(*all_))
        case _ if named.several:
            by_folder = {folder.as_posix(): report for folder, report in reports.items()}
            terminal.document(findings.all_to_json(by_folder, errors=kernels.texts(clashes)))
        case _:
            terminal.document(findings.to_json(*all_))
    return 2 if selecting.say(clashes) or any(report.refused for report in all_) else 0
