"""Show plans as text or as a page: the cells, the decision about each row, and the savings of the stable ABI."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from builder.ci.plan import CiJob, CiPlan, explained_rows, footnotes, footnotes_of_rules, headline, make
from builder.ci.plan.jobs import Costs
from builder.config import Backend, Framework
from builder.matrix import Row
from builder.wording import columns, reasons_left_out


def names(plans: Iterable[CiPlan], jobs: Sequence[CiJob] | None, *, of_several: bool = False) -> str:
    """Return a line for each variant, with `of_several` as `KERNEL:VARIANT`; with `jobs`, a line for each shard.

    A noarch name stands for all its systems.
    """
    if jobs is not None:
        return "".join(f"{job.variants}\n" for job in jobs)
    found = (f"{plan.name}:{cell.variant}" if of_several else cell.variant for plan in plans for cell in plan.cells)
    return "".join(f"{name}\n" for name in dict.fromkeys(found))


def table(plan: CiPlan, jobs: Sequence[CiJob] | None, width: int | None = None) -> str:
    """Return the cells by backend, and the notes about them.

    Where a table is wider than `width`, it is without the systems, with which the names of most cells end.
    """
    job_of = {cell.variant: job.name for job in jobs or () for cell in job.cells}
    head = ("variant", "torch", "toolkit", "system", *(() if jobs is None else ("job",)))
    groups: dict[str, list[tuple[str, ...]]] = {}
    for cell in plan.cells:
        row = (
            cell.variant,
            "-" if cell.framework is Framework.CTYPES else str(cell.torch),
            cell.toolkit or "-",
            cell.system,
        )
        groups.setdefault(cell.backend.value, []).append((*row, *(() if jobs is None else (job_of[cell.variant],))))
    listed = [head, *(row for rows in groups.values() for row in rows)]
    lines = columns(listed)
    if width is not None and max(map(len, lines)) + 2 > width and all(row[0].endswith(row[3]) for row in listed[1:]):
        lines = columns([(*row[:3], *row[4:]) for row in listed])
    shown = [headline(plan), *(("", f"  {lines.pop(0)}") if groups else ())]
    for backend, rows in groups.items():
        shown.append(f"{backend} ({len(rows)})")
        shown += [f"  {lines.pop(0)}" for _ in rows]
    return "\n".join((*shown, *_footnotes(plan))) + "\n"


def explain(plan: CiPlan) -> str:
    """Return the decision about every candidate row, by backend: rule, line of the config, remedy."""
    lines = [headline(plan)]
    for backend, rows in groupby(explained_rows(plan), key=lambda row: row.row.backend):
        lines += ["", backend.value]
        for row in rows:
            lines.append(f"  {row.row}: " + (f"left out [{row.rule}]" if row.is_left_out else row.rule))
            lines.append(f"      {row.message}")
            lines += [f"      decided by {row.where}"] if row.where else []
            lines += [f"      to change it: {row.remedy}"] if row.remedy else []
    return "\n".join([*lines, *_footnotes(plan)]) + "\n"


def _footnotes(plan: CiPlan) -> Iterator[str]:
    found = footnotes(plan)
    yield from ("", *found) if found else ()


def table_of_several(plans: Sequence[CiPlan], jobs: Sequence[CiJob] | None, left_out: Mapping[str, str]) -> str:
    """Return the number of cells by kernel and backend, and why other kernels have no cells."""
    cells = [cell for plan in plans for cell in plan.cells]
    systems = len({cell.system for cell in cells})
    on = f" on {_count(systems, 'system')}" if cells else ""
    backends = sorted({cell.backend for cell in cells}, key=lambda backend: backend.value)
    rows = [("kernel", "cells", *(backend.value for backend in backends))]
    for plan in plans:
        each = [sum(cell.backend is backend for cell in plan.cells) for backend in backends]
        rows.append((plan.name, str(len(plan.cells)), *(str(count or "-") for count in each)))
    lines = [f"{_count(len(plans), 'kernel')}: {_count(len(cells), 'cell')}{on}", "", *columns(rows)]
    if jobs is not None:
        shown = [(job.name, str(len(job.cells)), str(job.minutes)) for job in jobs]
        lines += ["", *columns([("job", "cells", "minutes"), *shown])]
    notes = [*footnotes_of_rules([skipped for plan in plans for skipped in plan.skipped]), *reasons_left_out(left_out)]
    return "\n".join([*lines, *(("", *notes) if notes else ())]) + "\n"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """The wheels and compile seconds of a backend, with and without the stable ABI."""

    backend: Backend
    wheels: int
    wheels_without: int
    seconds: float
    seconds_without: float


def savings(plan: CiPlan, among: Iterable[Row]) -> tuple[Saving, ...]:
    """Return the wheels and seconds that the stable ABI saves, for each backend of the plan in order."""
    kernel = plan.kernel
    torch = kernel.config.torch
    classic = kernel.config if torch is None else replace(kernel.config, torch=replace(torch, stable_abi=None))
    without = make(replace(kernel, config=classic), among, plan.scope)
    costs = Costs(kernel.config)
    found = []
    for backend in dict.fromkeys(kernel.config.general.backends):
        mine = [cell for cell in plan.cells if cell.backend is backend]
        theirs = [cell for cell in without.cells if cell.backend is backend]
        if theirs or mine:
            found.append(
                Saving(
                    backend=backend,
                    wheels=len(mine),
                    wheels_without=len(theirs),
                    seconds=sum(map(costs.compile_seconds, mine)),
                    seconds_without=sum(map(costs.compile_seconds, theirs)),
                )
            )
    return tuple(found)


def table_of_savings(plan: CiPlan, among: Iterable[Row]) -> str:
    """Return the savings of the stable ABI, a line for each backend, and the sum."""
    found = savings(plan, among)
    rows: list[tuple[str, ...]] = [("backend", "wheels", "without", "compile", "without", "saved")]
    rows += [_saving(saving.backend.value, [saving]) for saving in found]
    rows.append(_saving("total", found))
    note = "compile: estimated seconds of compilers, one after the other (builder/data/runners.toml)"
    return "\n".join([f"{plan.name}: what the stable ABI saves", "", *columns(rows), "", note]) + "\n"


def _saving(name: str, savings: Sequence[Saving]) -> tuple[str, ...]:
    wheels, without = sum(one.wheels for one in savings), sum(one.wheels_without for one in savings)
    seconds, slow = sum(one.seconds for one in savings), sum(one.seconds_without for one in savings)
    saved = f"{without - wheels} wheels, {slow - seconds:.0f} s"
    return name, str(wheels), str(without), f"{seconds:.0f} s", f"{slow:.0f} s", saved


def of_one_library(plan: CiPlan, among: Iterable[Row]) -> str:
    """Return the savings of one library for all Pythons; empty unless the kernel has a library for each Python."""
    torch, cells = plan.kernel.config.torch, plan.cells
    if torch is None or not any(cell.python is not None for cell in cells):
        return ""
    usual = replace(plan.kernel.config, torch=replace(torch, python_abi=None))
    without = make(replace(plan.kernel, config=usual), among, plan.scope).cells
    cost = Costs(usual).compile_seconds
    wheels, seconds = len(cells) - len(without), sum(map(cost, cells)) - sum(map(cost, without))
    return (
        f"\none library for all Pythons would save {wheels} wheels and {seconds:.0f} s of compilers: "
        "it needs no 'torch.python-abi', and 'builder check' names the lines that stand in the way\n"
    )


def page(plans: Iterable[CiPlan], jobs: Sequence[CiJob] | None, left_out: Mapping[str, str] | None = None) -> str:
    """Return plans as one self-contained page; `left_out` has the reasons why other kernels are not in it."""
    from builder import templates  # noqa: PLC0415  start-up time

    sections = [_section(plan) for plan in plans]
    return templates.page(
        "plan.html.j2",
        title=", ".join(section["name"] for section in sections) or "no kernel",
        sections=sections,
        jobs=tuple(jobs or ()),
        left_out=tuple(reasons_left_out(left_out or {})),
    ).decode()


def _section(plan: CiPlan) -> dict[str, Any]:
    """Return the data for a kernel's part of the page: the built cells by backend, the other rows by rule."""
    left_out = sorted((row for row in explained_rows(plan) if row.is_left_out), key=lambda row: row.rule)
    # By backend: the cells, then the rows that the wheel of another row serves.
    built = groupby((row for row in explained_rows(plan) if not row.is_left_out), key=lambda row: row.row.backend.value)
    return {
        "name": plan.name,
        "headline": headline(plan),
        "built": [{"name": name, "rows": sorted(rows, key=lambda row: row.cell is None)} for name, rows in built],
        "left_out": [{"name": rule, "rows": list(rows)} for rule, rows in groupby(left_out, key=lambda row: row.rule)],
        "footnotes": footnotes(plan),
    }
