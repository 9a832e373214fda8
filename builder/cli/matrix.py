"""`builder matrix`: show the cells of kernels, and why the others are left out."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from builder import matrix, terminal
from builder.ci.plan import CiJob, CiPlan, documents, make, text, without_stored
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
from builder.errors import BuilderError, NothingToDoError
from builder.matrix.selection import Scope, require_cells
from builder.plan import kernels
from builder.plan.kernels import Refusal
from builder.wording import reasons_left_out

FORMATS = ("table", "names", "json", "html", "github", "gitlab")
_LISTS = ("names", "github", "gitlab")
"""Formats that cannot say what is wrong with a kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The plan of each kernel, and the kernels that have none."""

    several: bool
    selected: Sequence[CiPlan]
    """The cells in scope."""
    plans: Sequence[CiPlan]
    """The cells that --changed-since and --skip-stored leave."""
    left_out: Mapping[str, str]
    """The reason for which a kernel has no cell, by its name."""
    refusals: tuple[Refusal, ...]


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
    """Show the cells of kernels: one wheel each."""
    if (explain or show_savings) and form != "table":
        raise click.UsageError("--explain and --savings are tables: other formats take neither")
    places = parse_runners(runners, gitlab=form == "gitlab")
    found = _plan(named, Scope(**given), since=changed_since, stored=store if skip_stored else None)
    formatted = functools.partial(_formatted, found, form, shards=shards, places=places)
    if named.several:
        if explain:
            shown = "\n".join(map(text.explain, found.plans))
        elif show_savings:
            shown = "\n".join(text.table_of_savings(plan, matrix.rows()) for plan in found.plans)
        elif found.refusals and form in _LISTS:
            shown = ""  # a list without some kernels would be taken for the whole
        else:
            shown = formatted()
        terminal.document(shown)
        return selecting.say(found.refusals)
    (plan,) = found.plans
    if explain:
        terminal.out(text.explain(plan) + text.of_one_library(plan, matrix.rows()), end="")
        _say_what_is_possible(plan, store)
    elif form == "html":
        terminal.document(formatted())
    require_cells(found.selected[0])  # which the table of every row and the page say, too
    if show_savings:
        terminal.out(text.table_of_savings(plan, matrix.rows()), end="")
    elif not explain and form != "html":
        terminal.document(formatted())
    return 0


def _plan(named: NamedKernels, scope: Scope, *, since: str | None, stored: Path | None) -> _Found:
    """Return the plan of each kernel, without cells that did not change or whose wheel is in a store.

    Raises:
        BuilderError: the one kernel cannot be read, there is no cell of any of several, or git has no such revision.
    """
    loaded = kernels.load(named.folders, several=named.several)
    scoped = kernels.among(loaded.kernels, scope, several=named.several)
    selected: list[CiPlan] = []
    plans: list[CiPlan] = []
    left_out, refusals = dict(scoped.left_out), list(loaded.refusals)
    for kernel, own in scoped.scopes:
        plan = make(kernel, matrix.rows(), own)
        if named.several and not plan.cells:
            left_out[kernel.config.general.name] = "no cell is selected"
            continue
        try:
            plans.append(_narrowed(plan, since=since, stored=stored))
            selected.append(plan)
        except BuilderError as error:
            if not named.several:
                raise
            refusals.append(Refusal(folder=kernel.root, error=error))
    if not plans and not refusals:
        reasons = [f"  {reason}" for reason in reasons_left_out(left_out)]
        raise NothingToDoError(
            "\n".join(("no cell of any kernel is selected: there is nothing to build", *reasons)),
            help="`builder matrix --explain` of one kernel says what would change each row",
        )
    return _Found(several=named.several, selected=selected, plans=plans, left_out=left_out, refusals=tuple(refusals))


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
            terminal.err(f"{cell.variant}: its wheel: {found.text}")
    here = sum(each.missing is None for each in support)
    say = "`builder doctor DIR` says what others lack, and what asks for those of another system"
    terminal.err(f"\n{here} of {len(plan.cells)} cells can be built here: {say}")


def _formatted(found: _Found, form: str, *, shards: int | None, places: Runners) -> str:
    """Return plans as their format has them: that of one kernel, or those of several, with what has no part in it."""
    plans, several = found.plans, found.several
    split: tuple[CiJob, ...] | None = None
    if shards is not None or form in {"github", "gitlab"}:
        work = tuple(each for plan in plans for each in work_of(plan, of_several=several))
        split = jobs(work, place=places.place, shards=shards)
    match form:
        case "names":
            shown = text.names(plans, split, of_several=several)
        case "table":
            shown = text.table_of_several(plans, split, found.left_out) if several else text.table(plans[0], split)
        case "html":
            shown = text.page(plans, split, found.left_out)
        case "github":
            shown = documents.github(split or ())
        case "gitlab":
            shown = documents.gitlab(split or ())
        case _ if several:
            folders = {plan.kernel.root.as_posix(): plan for plan in plans}
            errors = kernels.texts(found.refusals)
            shown = documents.several(folders, places, split, left_out=found.left_out, errors=errors)
        case _:
            shown = documents.document(plans[0], places, split)
    return shown
