"""`builder doctor`: show this machine, its toolchains and the cells it can build, or what one kernel lacks here."""

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from builder import doctor, json_text, matrix, terminal
from builder.cli import completing
from builder.cli.arguments import store_option
from builder.cli.selecting import sets_option
from builder.matrix.selection import Scope
from builder.plan.buildable import Support, cell_support, row_support
from builder.store import Store


@click.command()
@click.argument(
    "kernel", metavar="[DIR]", required=False, type=click.Path(path_type=Path), shell_complete=completing.kernels
)
@store_option
@sets_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(kernel: Path | None, store: Path, sets: tuple[str, ...], as_json: bool) -> None:
    """Show what this machine has, which cells it can build, and what each other one lacks.

    With DIR, the cells of that kernel, and what it needs besides: sources and kernels from elsewhere, and code for the
    GPUs that it requires.
    """
    if kernel is not None:
        _of_kernel(kernel, Store(store), sets, as_json=as_json)
        return
    facts = list(doctor.of_machine(os.environ, Store(store)))
    rows = tuple(row for row in matrix.rows() if row.set in sets and row.variant is not None)
    support = list(row_support(rows, os.environ))
    if as_json:
        _document({"facts": _facts_json(facts), "cells": _cells_json(support)})
        return
    _show(facts, support)
    terminal.err(f"\n{_here(support)} of {len(support)} cells of {_listed(sets)} can be built here")


def _of_kernel(kernel: Path, store: Store, sets: tuple[str, ...], *, as_json: bool) -> None:
    from builder.ci.plan import footnotes, headline, make  # noqa: PLC0415  start-up time
    from builder.kernel import load  # noqa: PLC0415
    from builder.plan.ask import Ask, KernelBuild  # noqa: PLC0415

    plan = make(load(kernel), matrix.rows(), Scope(sets=sets))
    facts = list(doctor.of_kernel(plan.kernel, plan.cells, store))
    ask = Ask(store=store, environ=dict(os.environ))
    support = list(cell_support(KernelBuild(kernel=plan.kernel, cells=plan.cells, ask=ask)))
    notes = footnotes(plan)
    if as_json:
        name = plan.kernel.config.general.name
        _document({"kernel": name, "facts": _facts_json(facts), "cells": _cells_json(support), "notes": notes})
        return
    terminal.out(f"{headline(plan)}\n")
    _show(facts, support)
    for line in ("", *notes) if notes else ():
        terminal.out(line)
    more = "`builder doctor` shows this machine, `builder matrix --explain` why there is each cell"
    terminal.err(f"\n{_here(support)} of {len(support)} cells of {_listed(sets)} can be built here: {more}")


def _here(support: Sequence[Support]) -> int:
    return sum(each.missing is None for each in support)


def _document(found: Mapping[str, object]) -> None:
    terminal.document(json_text.document(found))


def _show(facts: Sequence[doctor.Fact], support: Sequence[Support]) -> None:
    width = max((18, *(len(fact.name) for fact in facts)))
    for fact in facts:
        mark, text = ("ok", fact.found) if fact.found is not None else ("--", f"missing; {fact.help}")
        terminal.out(f"{mark:3} {fact.name:{width}} {text}")
    if facts:
        terminal.out()
    for line in _cells_text(support):
        terminal.out(line)


def _cells_text(support: Sequence[Support]) -> Iterator[str]:
    """Yield the cells that can be built, then the others by what they lack: each reason once, most cells first."""
    lacks: dict[tuple[str, str], list[str]] = {}
    ways: dict[str, list[str]] = {}
    for row in support:
        alike = ways.setdefault(row.how, []) if row.missing is None else None
        if alike is None:
            alike = lacks.setdefault((row.missing or "", row.help or ""), [])
        alike.append(row.variant)
    for how, here in sorted(ways.items()):
        yield f"ok  {_count(here)} can be built here{how and f' {how}'}"
        yield from _wrapped(here)
    for (missing, remedy), variants in sorted(lacks.items(), key=lambda item: -len(item[1])):
        yield f"--  {_count(variants)}: {missing}"
        yield from (f"      {remedy}",) if remedy else ()
        yield from _wrapped(variants)


def _count(variants: Sequence[str]) -> str:
    return f"{len(variants)} cell{'' if len(variants) == 1 else 's'}"


def _wrapped(variants: Sequence[str]) -> Iterator[str]:
    """Yield names of cells, as many on a line as a terminal of 100 columns has room for."""
    text = " ".join(variants)
    yield from textwrap.wrap(text, 100, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def _facts_json(facts: list[doctor.Fact]) -> list[dict[str, object]]:
    return [{"name": fact.name, "found": fact.found, "help": fact.help or None} for fact in facts]


def _cells_json(support: Sequence[Support]) -> list[dict[str, object]]:
    return [
        {
            "variant": row.variant,
            "buildable": row.missing is None,
            "missing": row.missing,
            "help": row.help,
            "how": row.how or None,
        }
        for row in support
    ]


def _listed(sets: tuple[str, ...]) -> str:
    *first, last = sets
    return f"{', '.join(first)} and {last}" if first else last
