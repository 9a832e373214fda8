"""`builder diff`: what changed between two builds."""

import os
import shutil
from pathlib import Path

import click

from builder import json_text, terminal
from builder.cli.arguments import python_option, store_option
from builder.diff import changes, compare, sides
from builder.diff.ops import Loading
from builder.errors import DifferenceError
from builder.run import Processes


@click.command()
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "markdown", "json")),
    default="text",
    show_default=True,
    help="Markdown is for a pull request.",
)
@python_option("Python whose torch loads the builds. Default: an environment of the store, or the running Python.")
@store_option
@click.option("--no-load", is_flag=True, help="Load nothing: compare the schemas of ops as far as libraries have them.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(
    before: str, after: str, *, form: str, python: Path | None, store: Path, no_load: bool, as_json: bool
) -> int:
    """Show what changed between two builds, and what breaks the promises of their versions.

    BEFORE and AFTER are a wheel, a folder of wheels, a folder in hub layout, or a package index that `builder index`
    made: its folder or its URL, as INDEX for the newest version or as INDEX==1.2.0. The exit code is 1 if something
    breaks. Ops are compared by loading both builds in a sandbox, where this machine has their torch.
    """
    cc, home = shutil.which("cc"), os.environ.get("HOME")
    loading = Loading(
        store=store, python=python, home=Path(home) if home else None, cc=None if cc is None else Path(cc)
    )
    with sides.opened((before, after), environ=os.environ, processes=Processes()) as found:
        differences = tuple(compare.sides(*found, None if no_load else loading))
    if as_json or form == "json":
        terminal.document(json_text.document(changes.document(differences)))
    else:
        terminal.document(changes.text(differences) if form == "text" else changes.markdown(differences))
    return DifferenceError.exit_code if any(each.breaking for each in differences) else 0
