"""The plans of several kernels, as `builder matrix` shows them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from builder import matrix, terminal
from builder.ci.plan import CiJob, CiPlan, documents, make, text
from builder.ci.plan.jobs import Runners, jobs, work_of
from builder.cli import selecting, several
from builder.cli.narrowing import Narrowing
from builder.cli.several import LoadedKernels, Refusal
from builder.errors import BuilderError, NothingToDoError
from builder.matrix.selection import Scope
from builder.wording import reasons_left_out

_LISTS = ("names", "github", "gitlab")
"""Formats that cannot say what is wrong with a kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How plans are shown."""

    form: str
    explain: bool
    savings: bool
    shards: int | None
    places: Runners


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    plans: tuple[CiPlan, ...]
    left_out: Mapping[str, str]
    """Why a kernel has no cell, by its name."""
    refusals: tuple[Refusal, ...]


def show(loaded: LoadedKernels, scope: Scope, narrowing: Narrowing, asked: Asked) -> int:
    """Show the plans of several kernels and what is wrong with others, and return the worst exit code.

    Raises:
        BuilderError: there is no cell at all, or too few shards.
    """
    found = _make(loaded, scope, narrowing)
    if not found.plans and not found.refusals:
        reasons = [f"  {reason}" for reason in reasons_left_out(found.left_out)]
        raise NothingToDoError(
            "\n".join(("no cell of any kernel is selected: there is nothing to build", *reasons)),
            help="`builder matrix --explain` of one kernel says what would change each row",
        )
    terminal.document(_shown(found, asked))
    return several.say(found.refusals)


def _make(loaded: LoadedKernels, scope: Scope, narrowing: Narrowing) -> _Found:
    plans: list[CiPlan] = []
    refusals = list(loaded.refusals)
    scoped = selecting.among(loaded.kernels, scope)
    left_out = dict(scoped.left_out)
    for kernel, own in scoped.scopes:
        plan = make(kernel, matrix.rows(), own)
        if not plan.cells:
            left_out[kernel.config.general.name] = "no cell is selected"
            continue
        try:
            plans.append(narrowing.of(plan))
        except BuilderError as error:
            refusals.append(Refusal(folder=kernel.root, error=error))
    return _Found(plans=tuple(plans), left_out=left_out, refusals=tuple(refusals))


def _shown(found: _Found, asked: Asked) -> str:
    plans = found.plans
    if asked.explain:
        return "\n".join(map(text.explain, plans))
    if asked.savings:
        return "\n".join(text.table_of_savings(plan, matrix.rows()) for plan in plans)
    if found.refusals and asked.form in _LISTS:
        return ""  # a list without some kernels would be taken for the whole
    split: tuple[CiJob, ...] | None = None
    if asked.shards is not None or asked.form in {"github", "gitlab"}:
        work = tuple(each for plan in plans for each in work_of(plan, of_several=True))
        split = jobs(work, place=asked.places.place, shards=asked.shards)
    shown = {
        "table": lambda: text.table_of_several(plans, split, found.left_out),
        "names": lambda: text.names(plans, split, of_several=True),
        "html": lambda: _page(found, split),
        "json": lambda: _document(found, asked, split),
        "github": lambda: documents.github(split or ()),
        "gitlab": lambda: documents.gitlab(split or ()),
    }
    return shown[asked.form]()


def _document(found: _Found, asked: Asked, jobs: Sequence[CiJob] | None) -> str:
    return documents.several(
        {plan.kernel.root.as_posix(): plan for plan in found.plans},
        asked.places,
        jobs,
        left_out=found.left_out,
        errors=several.texts(found.refusals),
    )


def _page(found: _Found, jobs: Sequence[CiJob] | None) -> str:
    from builder.ci.plan.page import page  # noqa: PLC0415  start-up time

    return page(found.plans, jobs, found.left_out)
