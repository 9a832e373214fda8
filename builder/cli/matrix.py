"""`builder matrix`: show the cells of kernels, and why the others are left out."""

import os
from dataclasses import dataclass
from pathlib import Path

import click

from builder import matrix, terminal
from builder.ci.plan import CiJob, CiPlan, make, text, without_stored
from builder.ci.plan.jobs import Runners, jobs, parse_runners, work_of
from builder.cli import selecting
from builder.cli.arguments import Name, store_option
from builder.cli.selecting import (
    NamedKernels,
    backends_option,
    kernels_argument,
    sets_option,
    systems_option,
    torches_option,
    unbundled_option,
)
from builder.config.values import Backend, Version
from builder.errors import NothingToDoError
from builder.kernel import Kernel
from builder.matrix.selection import Scope, require_cells
from builder.plan import kernels
from builder.plan.kernels import Chosen

FORMATS = ("table", "names", "json", "html", "github", "gitlab")
_LISTS = ("names", "github", "gitlab")
"""Formats that cannot say what is wrong with a kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """The form in which plans are shown."""

    name: str
    explain: bool
    savings: bool
    shards: int | None
    places: Runners


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
    shown = _Form(name=form, explain=explain, savings=show_savings, shards=shards, places=places)
    scope = Scope(sets=sets, systems=systems, backends=backends, unbundled=unbundled, torches=torches)

    def plan(kernel: Kernel, own: Scope) -> tuple[CiPlan, CiPlan]:
        selected = make(kernel, matrix.rows(), own)
        if named.several and not selected.cells:
            raise NothingToDoError("no cell is selected")
        return selected, _narrowed(selected, since=changed_since, stored=store if skip_stored else None)

    found = kernels.of_each(
        kernels.in_scope(named.folders, scope, several=named.several),
        plan,
        several=named.several,
        why_left_out=lambda _, error: error.message if isinstance(error, NothingToDoError) else None,
        nothing="no cell of any kernel is selected: there is nothing to build",
        remedy="`builder matrix --explain` of one kernel says what would change each row",
    )
    if named.several:
        plans = tuple(left for _, left in found.found)
        several = Chosen(found=plans, left_out=found.left_out, refusals=found.refusals)
        terminal.document(_of_several(several, shown))
        return selecting.say(found.refusals)
    ((selected, left),) = found.found
    _show_one(selected, left, shown, store)
    return 0


def _narrowed(plan: CiPlan, *, since: str | None, stored: Path | None) -> CiPlan:
    if since is not None:
        from builder.ci.plan.changes import Since  # noqa: PLC0415  start-up time

        plan = Since(revision=since).left_of(plan, matrix.rows())
    if stored is None:
        return plan
    from builder import toolchain  # noqa: PLC0415  start-up time
    from builder.plan import dry_run  # noqa: PLC0415
    from builder.plan.ask import Ask, KernelBuild  # noqa: PLC0415
    from builder.store import Store  # noqa: PLC0415

    # Only cells of this machine's system can have a key here.
    cells = tuple(cell for cell in plan.cells if cell.system == toolchain.system())
    ask = Ask(store=Store(stored), environ=dict(os.environ))
    found = dry_run.preview(KernelBuild(kernel=plan.kernel, cells=cells, ask=ask))
    # By name: a noarch wheel is the same for every system.
    hits = {one.cell.variant for one in found if one.action == "hit"}
    return without_stored(plan, lambda cell: cell.variant in hits)


def _show_one(selected: CiPlan, plan: CiPlan, form: _Form, store: Path) -> None:
    """Show the plan of one kernel.

    Raises:
        NothingToDoError: no cell is selected; the table of every row and the page say so, too.
    """
    if form.explain:
        terminal.out(text.explain(plan) + text.of_one_library(plan, matrix.rows()), end="")
        _say_what_is_possible(plan, store)
    elif form.name == "html":
        terminal.document(_formatted((plan,), form))
    require_cells(selected)
    if form.savings:
        terminal.out(text.table_of_savings(plan, matrix.rows()), end="")
    elif not form.explain and form.name != "html":
        terminal.document(_formatted((plan,), form))


def _say_what_is_possible(plan: CiPlan, store: Path) -> None:
    from builder.plan import buildable, size_estimate  # noqa: PLC0415  start-up time
    from builder.plan.ask import Ask, KernelBuild  # noqa: PLC0415
    from builder.store import Store  # noqa: PLC0415

    ask = Ask(store=Store(store), environ=dict(os.environ))
    support = tuple(buildable.cell_support(KernelBuild(kernel=plan.kernel, cells=plan.cells, ask=ask)))
    for cell in plan.cells:
        found = size_estimate.of(ask.store, plan.kernel, cell)
        if found is not None:
            terminal.err(f"{cell.variant}: its wheel: {found.text}")
    here = sum(each.missing is None for each in support)
    say = "`builder doctor DIR` says what others lack, and what asks for those of another system"
    terminal.err(f"\n{here} of {len(plan.cells)} cells can be built here: {say}")


def _of_several(chosen: Chosen[CiPlan], form: _Form) -> str:
    if form.explain:
        return "\n".join(map(text.explain, chosen.found))
    if form.savings:
        return "\n".join(text.table_of_savings(plan, matrix.rows()) for plan in chosen.found)
    if chosen.refusals and form.name in _LISTS:
        return ""  # a list without some kernels would be taken for the whole
    return _formatted(chosen.found, form, several=chosen)


def _formatted(plans: tuple[CiPlan, ...], form: _Form, *, several: Chosen[CiPlan] | None = None) -> str:
    """Return plans as their format has them: that of one kernel, or those of `several`, with what has no part in it."""
    split: tuple[CiJob, ...] | None = None
    if form.shards is not None or form.name in {"github", "gitlab"}:
        work = tuple(each for plan in plans for each in work_of(plan, of_several=several is not None))
        split = jobs(work, place=form.places.place, shards=form.shards)
    match form.name:
        case "names":
            return text.names(plans, split, of_several=several is not None)
        case "table" if several is not None:
            return text.table_of_several(plans, split, several.left_out)
        case "table":
            return text.table(plans[0], split)
        case "html":
            from builder.ci.plan.page import page  # noqa: PLC0415  start-up time

            return page(plans, split, None if several is None else several.left_out)
        case _:
            return _document(plans, split, form, several)


def _document(
    plans: tuple[CiPlan, ...], split: tuple[CiJob, ...] | None, form: _Form, several: Chosen[CiPlan] | None
) -> str:
    from builder.ci.plan import documents  # noqa: PLC0415  start-up time

    if form.name == "github":
        return documents.github(split or ())
    if form.name == "gitlab":
        return documents.gitlab(split or ())
    if several is None:
        return documents.document(plans[0], form.places, split)
    return documents.several(
        {plan.kernel.root.as_posix(): plan for plan in plans},
        form.places,
        split,
        left_out=several.left_out,
        errors=kernels.texts(several.refusals),
    )
