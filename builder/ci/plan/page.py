"""A plan as one page that needs nothing else: what is built, what is not, and what would change it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from builder import templates
from builder.ci.plan import CiJob, CiPlan, ExplainedRow, explained_rows, footnotes, headline
from builder.wording import reasons_left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Rows that share a table."""

    name: str
    rows: tuple[ExplainedRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """The part of the page about one kernel."""

    name: str
    headline: str
    built: tuple[_Group, ...]
    """By backend: the cells, then the rows that a wheel of another row serves."""
    left_out: tuple[_Group, ...]
    """By rule."""
    footnotes: tuple[str, ...]


def page(plans: Sequence[CiPlan], jobs: Sequence[CiJob] | None, left_out: Mapping[str, str] | None = None) -> str:
    """Return the page of the plans of one kernel or of several; with `left_out`, why others have no part in it."""
    sections = tuple(map(_section, plans))
    return templates.page(
        "plan.html.j2",
        title=", ".join(section.name for section in sections) or "no kernel",
        sections=sections,
        jobs=tuple(jobs or ()),
        left_out=tuple(reasons_left_out(left_out or {})),
    ).decode()


def _section(plan: CiPlan) -> _Section:
    rows = explained_rows(plan)
    return _Section(
        name=str(plan.kernel.config.general.name),
        headline=headline(plan),
        built=tuple(
            replace(group, rows=tuple(sorted(group.rows, key=lambda row: row.cell is None)))
            for group in _groups([row for row in rows if not row.is_left_out], lambda row: row.row.backend.value)
        ),
        left_out=_groups(
            sorted((row for row in rows if row.is_left_out), key=lambda row: row.rule), lambda row: row.rule
        ),
        footnotes=footnotes(plan),
    )


def _groups(rows: Sequence[ExplainedRow], name: Callable[[ExplainedRow], str]) -> tuple[_Group, ...]:
    return tuple(_Group(name=key, rows=tuple(found)) for key, found in groupby(rows, key=name))
