"""`builder matrix`: show the cells of kernels, and why the others are left out."""

import functools
import sys
from pathlib import Path
from typing import Any

import click

from builder import matrix, terminal
from builder.ci.plan import CiJob, CiPlan, documents, make, text, without_stored
from builder.ci.plan.jobs import Runners, jobs, parse_runners, work_of
from builder.cli import screen, selecting
from builder.cli.arguments import Name, store_option
from builder.cli.selecting import (
    backends_option,
    kernels_argument,
    sets_option,
    systems_option,
    torches_option,
    unbundled_option,
)
from builder.errors import NothingToDoError
from builder.kernel import Kernel
from builder.matrix.selection import Scope, require_cells
from builder.plan import kernels
from builder.plan.kernels import Chosen, NamedKernels

FORMATS = ("table", "names", "json", "html", "github", "gitlab")
_LISTS = ("names", "github", "gitlab")
"""Formats that have no place for the problems of a kernel."""


@click.command()
@kernels_argument
@click.option("--format", "form", type=Name("format", FORMATS), default="table", help="How to show them.")
@unbundled_option
@sets_option
@systems_option("Only cells of this system.")
@torches_option
@backends_option
@click.option(
    "--explain",
    is_flag=True,
    help="Show the decision about every row of the matrix, its reason, and what would change it.",
)
@click.option("--savings", "show_savings", is_flag=True, help="Wheels and compile seconds that the stable ABI saves.")
@click.option("--shards", type=int, help="Split the cells over up to this many jobs of similar cost.")
@click.option("--changed-since", metavar="REV", help="Only cells whose sources or settings changed since REV.")
@click.option("--skip-stored", is_flag=True, help="Only cells whose wheel is not in the store.")
@store_option
@click.option("--runner", "runners", multiple=True, metavar="SYSTEM=LABEL", help="Build a system on this runner.")
def command(
    named: NamedKernels,
    *,
    form: str,
    explain: bool,
    show_savings: bool,
    shards: int | None,
    changed_since: str | None,
    skip_stored: bool,
    store: Path,
    runners: tuple[str, ...],
    **given: Any,
) -> int:
    """Show the cells of kernels, one wheel each."""
    if (explain or show_savings) and form != "table":
        raise click.UsageError("--explain and --savings are tables: other formats take neither")
    places = parse_runners(runners, gitlab=form == "gitlab")
    found = _planned(named, Scope(**given), since=changed_since, stored=store if skip_stored else None)
    plans = tuple(left for _, left in found.found)
    chosen = Chosen(found=plans, left_out=found.left_out, refusals=found.refusals, several=found.several)
    formatted = functools.partial(_formatted, chosen, form, shards=shards, places=places)
    if named.several:
        if explain:
            shown = "\n".join(map(text.explain, chosen.found))
        elif show_savings:
            shown = "\n".join(text.table_of_savings(plan, matrix.rows()) for plan in chosen.found)
        elif chosen.refusals and form in _LISTS:
            shown = ""  # a list without some kernels would look complete
        else:
            shown = formatted()
        _write(shown, form)
        return selecting.say(chosen.refusals)
    ((selected, left),) = found.found
    if explain:
        screen.out(text.explain(left) + text.of_one_library(left, matrix.rows()), end="")
        _say_what_is_possible(left, store)
    elif form == "html":
        terminal.document(formatted())
    require_cells(selected)  # the page and the table of all rows report this, too
    if show_savings:
        screen.out(text.table_of_savings(left, matrix.rows()), end="")
    elif not explain and form != "html":
        _write(formatted(), form)
    return 0


def _write(shown: str, form: str) -> None:
    if form == "table" and sys.stdout is not None and sys.stdout.isatty():
        screen.out(shown, end="")
    else:
        terminal.document(shown)


def _planned(
    named: NamedKernels, scope: Scope, *, since: str | None, stored: Path | None
) -> Chosen[tuple[CiPlan, CiPlan]]:
    """Return the plan of each kernel, and the plan without unchanged and stored cells."""

    def plan(kernel: Kernel, own: Scope) -> tuple[CiPlan, CiPlan]:
        selected = make(kernel, matrix.rows(), own)
        if named.several and not selected.cells:
            raise NothingToDoError("no cell is selected")
        return selected, _narrowed(selected, since=since, stored=stored)

    return kernels.of_each(
        kernels.in_scope(named, scope),
        plan,
        why_left_out=lambda _, error: error.message if isinstance(error, NothingToDoError) else None,
        nothing="no cell of any kernel is selected: there is nothing to build",
        remedy="`builder matrix --explain` of one kernel says what would change each row",
    )


def _narrowed(plan: CiPlan, *, since: str | None, stored: Path | None) -> CiPlan:
    if since is not None:
        from builder.ci.plan.changes import changed_since  # noqa: PLC0415  start-up time

        plan = changed_since(plan, since, matrix.rows())
    if stored is None:
        return plan
    from builder import toolchain  # noqa: PLC0415  start-up time
    from builder.cli.asking import ask_of  # noqa: PLC0415
    from builder.plan import dry_run  # noqa: PLC0415
    from builder.plan.ask import KernelBuild  # noqa: PLC0415

    # Only cells of this machine's system can have a key here.
    cells = tuple(cell for cell in plan.cells if cell.system == toolchain.system())
    found = dry_run.preview(KernelBuild(kernel=plan.kernel, cells=cells, ask=ask_of(store=stored)))
    # By name: a noarch wheel is the same for every system.
    hits = {one.cell.variant for one in found if one.action == "hit"}
    return without_stored(plan, lambda cell: cell.variant in hits)


def _say_what_is_possible(plan: CiPlan, store: Path) -> None:
    from builder.cli.asking import ask_of  # noqa: PLC0415  start-up time
    from builder.plan import buildable, size_estimate  # noqa: PLC0415
    from builder.plan.ask import KernelBuild  # noqa: PLC0415

    build = KernelBuild(kernel=plan.kernel, cells=plan.cells, ask=ask_of(store=store))
    support = tuple(buildable.cell_support(build))
    for cell in plan.cells:
        found = size_estimate.of(build.ask.store, plan.kernel, cell)
        if found is not None:
            screen.err(f"{cell.variant}: its wheel: {found.text}")
    here = sum(each.missing is None for each in support)
    say = "`builder doctor DIR` says what others lack, and what asks for those of another system"
    screen.err(f"\n{here} of {len(plan.cells)} cells can be built here: {say}")


def _formatted(chosen: Chosen[CiPlan], form: str, *, shards: int | None, places: Runners) -> str:
    """Return plans in the wanted format: one plan, or several with the reasons against the other kernels."""
    plans, several = chosen.found, chosen.several
    split: tuple[CiJob, ...] | None = None
    if shards is not None or form in {"github", "gitlab"}:
        work = tuple(each for plan in plans for each in work_of(plan, of_several=several))
        split = jobs(work, place=places.place, shards=shards)
    match form:
        case "names":
            shown = text.names(plans, split, of_several=several)
        case "table":
            shown = (
                text.table_of_several(plans, split, chosen.left_out)
                if several
                else text.table(plans[0], split, screen.width_of(sys.stdout))
            )
        case "html":
            shown = text.page(plans, split, chosen.left_out)
        case "github":
            shown = documents.github(split or ())
        case "gitlab":
            shown = documents.gitlab(split or ())
        case _ if several:
            folders = {plan.kernel.root.as_posix(): plan for plan in plans}
            errors = kernels.texts(chosen.refusals)
            shown = documents.several(folders, places, split, left_out=chosen.left_out, errors=errors)
        case _:
            shown = documents.document(plans[0], places, split)
    return shown
