"""`builder matrix`: show the cells of a kernel, and why the others are left out."""

import os
from collections.abc import Callable
from pathlib import Path

import click

from builder import kernel as kernels
from builder import matrix, terminal
from builder.ci.plan import CiJob, CiPlan, make, text, without_stored
from builder.ci.plan.runners import Runners, parse
from builder.cli.arguments import Name, kernel_argument, store_option
from builder.cli.selecting import backends_option, sets_option, unbundled_option
from builder.config.values import Backend
from builder.matrix import Cell
from builder.matrix.selection import Scope, require_cells
from builder.matrix.variant import SYSTEMS

FORMATS = ("table", "names", "json", "github", "gitlab")


@click.command()
@kernel_argument
@click.option("--format", "form", type=Name("format", FORMATS), default="table", help="How to show them.")
@unbundled_option
@sets_option
@click.option("--system", "systems", type=Name("system", SYSTEMS), multiple=True, help="Only cells of this system.")
@backends_option
@click.option("--explain", is_flag=True, help="What becomes of every row of the matrix, why, and what would change it.")
@click.option("--savings", "show_savings", is_flag=True, help="Wheels and compile seconds that the stable ABI saves.")
@click.option("--shards", type=int, help="Split the cells over up to this many jobs of similar cost.")
@click.option("--changed-since", metavar="REV", help="Only cells whose sources or settings changed since REV.")
@click.option("--skip-stored", is_flag=True, help="Only cells whose wheel is not in the store.")
@store_option
@click.option("--runner", "runners", multiple=True, metavar="SYSTEM=LABEL", help="Build a system on this runner.")
def command(
    kernel: Path,
    form: str,
    *,
    unbundled: bool,
    sets: tuple[str, ...],
    systems: tuple[str, ...],
    backends: tuple[Backend, ...],
    explain: bool,
    show_savings: bool,
    shards: int | None,
    changed_since: str | None,
    skip_stored: bool,
    store: Path,
    runners: tuple[str, ...],
) -> None:
    """Show the cells of a kernel: one wheel each."""
    if (explain or show_savings) and form != "table":
        raise click.UsageError("--explain and --savings are tables: other formats take neither")
    places = parse(runners, gitlab=form == "gitlab")
    scope = Scope(sets=sets, systems=systems, backends=backends, unbundled=unbundled)
    selected = plan = make(kernels.load(kernel), matrix.rows(), scope)
    if changed_since is not None:
        from builder.ci.plan.changes import changed_since as since  # noqa: PLC0415  start-up time

        plan = since(plan, changed_since, matrix.rows())
    if skip_stored:
        plan = without_stored(plan, _stored(plan, store))
    if explain:
        from builder.ci.plan import savings  # noqa: PLC0415  start-up time

        terminal.out(text.explain(plan) + savings.of_one_library(plan, matrix.rows()), end="")
    require_cells(selected)
    if show_savings:
        from builder.ci.plan import savings  # noqa: PLC0415

        terminal.out(savings.shown(plan, matrix.rows()), end="")
    elif not explain:
        terminal.document(_shown(plan, form, places, shards))


def _stored(plan: CiPlan, store: Path) -> Callable[[Cell], bool]:
    """Return whether a cell's wheel is in the store; only cells of this machine's system can have a key here."""
    from builder import toolchain  # noqa: PLC0415  start-up time
    from builder.engine import budget, dry_run  # noqa: PLC0415
    from builder.engine.options import Options  # noqa: PLC0415
    from builder.store import Store  # noqa: PLC0415

    here = toolchain.system()
    options = Options(store=Store(store), output=Path(), limits=budget.machine(), environ=dict(os.environ))
    cells = tuple(cell for cell in plan.cells if cell.system == here)
    found = dry_run.preview(plan.kernel, cells, options)
    # By name: a noarch wheel is the same for every system.
    hits = {one.cell.variant for one in found if one.action == "hit"}
    return lambda cell: cell.variant in hits


def _shown(plan: CiPlan, form: str, places: Runners, shards: int | None) -> str:
    split = None if shards is None and form not in {"github", "gitlab"} else _jobs(plan, places, shards)
    if form == "names":
        return text.names(plan, split)
    if form == "table":
        return text.table(plan, split)
    from builder.ci.plan import documents  # noqa: PLC0415  start-up time

    if form == "json":
        return documents.document(plan, places, split)
    return documents.github(split or ()) if form == "github" else documents.gitlab(split or ())


def _jobs(plan: CiPlan, places: Runners, shards: int | None) -> tuple[CiJob, ...]:
    from builder.ci.plan.costs import Costs  # noqa: PLC0415  start-up time
    from builder.ci.plan.shards import jobs  # noqa: PLC0415

    return jobs(plan.cells, place=places.place, seconds=Costs(plan.kernel.config).seconds, shards=shards)
