"""`builder why`."""

import json
import os
from pathlib import Path

import click

from builder import kernel as kernels
from builder import terminal
from builder.cli import selecting
from builder.cli.arguments import kernel_argument, store_option
from builder.cli.selecting import unbundled_option, variants_option
from builder.engine import budget, dry_run
from builder.engine.options import Options
from builder.matrix.selection import Scope
from builder.store import Store


@click.command()
@kernel_argument
@variants_option("Cell to explain")
@unbundled_option
@store_option
@click.option("--no-isolation", is_flag=True, help="As for a build against the torch of the current environment.")
@click.option("--json", "as_json", is_flag=True, help="The differences as JSON.")
def command(
    kernel: Path, variants: tuple[str, ...], unbundled: bool, store: Path, no_isolation: bool, as_json: bool
) -> None:
    """Say what changed since a cell was last built: a field of its build record on each line."""
    loaded = kernels.load(kernel)
    cells = selecting.cells(loaded, Scope(unbundled=unbundled), variants=variants)
    options = Options(
        store=Store(store),
        output=Path(),
        limits=budget.machine(),
        environ=dict(os.environ),
        isolation=not no_isolation,
    )
    plans = dry_run.preview(loaded, cells, options)
    if as_json:
        terminal.document(json.dumps([plan.to_json() for plan in plans], indent=2), end="\n")
        return
    for plan in plans:
        terminal.out(f"{plan.cell.variant}: {plan.text}")
        for change in plan.changes:
            terminal.out(f"  {change.field}: {_short(change.before)} -> {_short(change.after)}")


def _short(value: object) -> str:
    return "absent" if value is None else str(value)
