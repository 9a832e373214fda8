"""`builder update`: rewrite a build.toml to the current edition."""

import difflib
from pathlib import Path

import click

from builder import terminal
from builder.cli.arguments import kernel_argument
from builder.config.text import Source
from builder.kernel import CONFIG


@click.command()
@kernel_argument
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if the file would change.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@click.option(
    "--edition",
    type=click.Choice(("5", "6")),
    default="5",
    show_default=True,
    help="The edition to write; 6 is a preview.",
)
@click.option("--license", "license_", metavar="SPDX", help="License of a kernel whose old config names none.")
def command(*, kernel: Path, check: bool, diff: bool, edition: str, license_: str | None) -> int:
    """Rewrite a build.toml to edition 5 (or 6), and keep its comments, order and layout."""
    from builder.config import detect_schema, update  # noqa: PLC0415  `--help` needs none of it

    path = kernel if kernel.name == CONFIG else kernel / CONFIG
    source = Source.read(path, name=str(path))
    text = update.rewrite(source, license=license_, preview=edition == "6")
    changed = text != source.text
    is_in = detect_schema(source.table(), source) if not changed else int(edition)
    if diff:
        terminal.document(_diff(source, text, edition))
    if not changed:
        terminal.err(f"{path} is in edition {is_in} already")
    elif check or diff:
        terminal.err(f"{path} would be rewritten to edition {is_in}")
    else:
        update.write(path, text)
        terminal.err(f"{path} is now in edition {is_in}")
    return 1 if check and changed else 0


def _diff(source: Source, text: str, edition: str) -> str:
    lines = difflib.unified_diff(
        source.text.splitlines(keepends=True),
        text.splitlines(keepends=True),
        fromfile=source.name,
        tofile=f"{source.name} (edition {edition})",
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
