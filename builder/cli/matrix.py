"""`builder matrix`: show the cells of a kernel, and why the others are left out."""

import os
from pathlib import Path

import click

from builder import kernel as kernels
from builder import matrix, terminal
from builder.ci.plan import CiJob, CiPlan, make, text
from builder.ci.plan.jobs import Runners, jobs, parse_runners, work_of
from builder.cli import several
from builder.cli.arguments import Name, store_option
from builder.cli.narrowing import Narrowing
from builder.cli.selecting import backends_option, sets_option, systems_option, torches_option, unbundled_option
from builder.cli.several import NamedKernels, kernels_argument
from builder.config.values import Backend, Version
from builder.matrix.selection import Scope, require_cells

FORMATS = ("table", "names", "json", "html", "github", "gitlab")


@click.command()
@kernels_argument
@click.option("--format", "form", type=Name("format", FORMATS), default="table", help="How to show them.")
@unbundled_option
@sets_option
@systems_option("Only cells of this system.")
@torches_option
@backends_option
@click.option("--explain", is_flag=True, help="What becomes of every row of the matrix, why, and what would change it.")
@click.option("--savings", "show_savings", is_flag=True, help="Wheels and compile seconds that the stable ABI saves.")
@click.option("--shards", type=int, help="Split the cells over up to this many jobs of similar cost.")
@click.option("--changed-since", metavar="REV", help="Only cells whose sources or settings changed since REV.")
@click.option("--skip-stored", is_flag=True, help="Only cells whose wheel is not in the store.")
@store_option
@click.option("--runner", "runners", multiple=True, metavar="SYSTEM=LABEL", help="Build a system on this runner.")
def command(
    named: NamedKernels,
    form: str,
    *,
    unbundled: bool,
    sets: tuple[str, ...],
    systems: tuple[str, ...],
    torches: tuple[Version, ...],
    backends: tuple[Backend, ...],
    explain: bool,
    show_savings: bool,
    shards: int | None,
    changed_since: str | None,
    skip_stored: bool,
    store: Path,
    runners: tuple[str, ...],
) -> int:
    """Show the cells of kernels: one wheel each."""
    if (explain or show_savings) and form != "table":
        raise click.UsageError("--explain and --savings are tables: other formats take neither")
    places = parse_runners(runners, gitlab=form == "gitlab")
    scope = Scope(sets=sets, systems=systems, backends=backends, unbundled=unbundled, torches=torches)
    narrowing = Narrowing.by(changed_since=changed_since, store=store if skip_stored else None)
    if named.several:
        from builder.cli import plans  # noqa: PLC0415  start-up time

        asked = plans.Asked(form=form, explain=explain, savings=show_savings, shards=shards, places=places)
        return plans.show(several.load(named), scope, narrowing, asked)
    selected = make(kernels.load(named.folders[0]), matrix.rows(), scope)
    plan = narrowing.of(selected)
    if explain:
        terminal.out(text.explain(plan) + text.of_one_library(plan, matrix.rows()), end="")
        _say_what_is_possible(plan, store)
    elif form == "html":  # which also says why there is no cell
        terminal.document(_shown(plan, form, places, shards))
    require_cells(selected)
    if show_savings:
        terminal.out(text.table_of_savings(plan, matrix.rows()), end="")
    elif not explain and form != "html":
        terminal.document(_shown(plan, form, places, shards))
    return 0


def _say_what_is_possible(plan: CiPlan, store: Path) -> None:
    from builder.plan import (  # noqa: PLC0415  start-up time
        buildable,
        limits,
        size_estimate,
    )
    from builder.plan.options import Options  # noqa: PLC0415
    from builder.store import Store  # noqa: PLC0415

    options = Options(store=Store(store), output=Path(), limits=limits.of_machine(), environ=dict(os.environ))
    here = buildable.cells_here(plan.kernel, plan.cells, options)
    for cell in plan.cells:
        found = size_estimate.of(options.store, plan.kernel, cell)
        if found is not None:
            terminal.err(f"{cell.variant}: its wheel: {found.text}")
    say = "`builder doctor DIR` says what others lack, and what asks for those of another system"
    terminal.err(f"\n{len(here)} of {len(plan.cells)} cells can be built here: {say}")


def _shown(plan: CiPlan, form: str, places: Runners, shards: int | None) -> str:
    split: tuple[CiJob, ...] | None = None
    if shards is not None or form in {"github", "gitlab"}:
        split = jobs(tuple(work_of(plan)), place=places.place, shards=shards)
    if form == "names":
        return text.names((plan,), split)
    if form == "table":
        return text.table(plan, split)
    if form == "html":
        from builder.ci.plan.page import page  # noqa: PLC0415  start-up time

        return page((plan,), split)
    from builder.ci.plan import documents  # noqa: PLC0415  start-up time

    if form == "json":
        return documents.document(plan, places, split)
    return documents.github(split or ()) if form == "github" else documents.gitlab(split or ())
