"""`builder doctor`: show this machine, its toolchains and the cells it can build, or what one kernel lacks here."""

import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import click

from builder import doctor, json_text, matrix, terminal
from builder.ci.plan import CiPlan, footnotes, headline, make
from builder.cli import completing, screen
from builder.cli.arguments import PATH, store_option
from builder.cli.asking import ask_of
from builder.cli.selecting import sets_option
from builder.kernel import load
from builder.matrix.selection import Scope
from builder.plan.ask import KernelBuild
from builder.plan.buildable import Support, cell_support, row_support


@click.command()
@click.argument("kernel", metavar="[DIR]", required=False, type=PATH, shell_complete=completing.kernels)
@store_option
@sets_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(kernel: Path | None, store: Path, sets: tuple[str, ...], as_json: bool) -> None:
    """Show what this machine has, which cells it can build, and what it lacks for the others.

    With DIR, show the cells of that kernel, and its other needs: sources and kernels from elsewhere, and code for the
    GPUs that it requires.
    """
    ask = ask_of(store=store)
    plan = None if kernel is None else make(load(kernel), matrix.rows(), Scope(sets=sets))
    if plan is None:
        facts = list(doctor.of_machine(os.environ, ask.store))
        rows = tuple(row for row in matrix.rows() if row.set in sets and row.variant is not None)
        support = list(row_support(rows, os.environ))
    else:
        facts = list(doctor.of_kernel(plan.kernel, plan.cells, ask.store))
        support = list(cell_support(KernelBuild(kernel=plan.kernel, cells=plan.cells, ask=ask)))
    if as_json:
        terminal.document(json_text.document(_document(plan, facts, support)))
        return
    if plan is not None:
        screen.out(f"{headline(plan)}\n")
    _show(facts, support)
    notes = () if plan is None else footnotes(plan)
    for line in ("", *notes) if notes else ():
        screen.out(line)
    here = sum(each.missing is None for each in support)
    names = " and ".join(filter(None, (", ".join(sets[:-1]), sets[-1])))
    more = "`builder doctor` shows this machine, `builder matrix --explain` why there is each cell"
    said = f"{here} of {len(support)} cells of {names} can be built here"
    screen.err(f"\n{said}" if plan is None else f"\n{said}: {more}")


def _document(plan: CiPlan | None, facts: Sequence[doctor.Fact], support: Sequence[Support]) -> dict[str, object]:
    return {
        **({} if plan is None else {"kernel": plan.kernel.config.general.name}),
        "facts": [{"name": fact.name, "found": fact.found, "help": fact.help or None} for fact in facts],
        "cells": [
            {
                "variant": row.variant,
                "buildable": row.missing is None,
                "missing": row.missing,
                "help": row.help,
                "how": row.how or None,
            }
            for row in support
        ],
        **({} if plan is None else {"notes": footnotes(plan)}),
    }


def _show(facts: Sequence[doctor.Fact], support: Sequence[Support]) -> None:
    """Show facts, then the cells that can be built, then the other cells by reason: the reason for most cells first."""
    width = max((18, *(len(fact.name) for fact in facts)))
    for fact in facts:
        mark, text = ("ok", fact.found) if fact.found is not None else ("--", f"missing; {fact.help}")
        screen.out(f"{mark:3} {fact.name:{width}} {text}")
    if facts:
        screen.out()
    ways: dict[str, list[str]] = {}
    lacks: dict[tuple[str, str], list[str]] = {}
    for row in support:
        if row.missing is None:
            ways.setdefault(row.how, []).append(row.variant)
        else:
            lacks.setdefault((row.missing, row.help or ""), []).append(row.variant)
    for how, here in sorted(ways.items()):
        said = how.replace("and are not", "and is not") if len(here) == 1 else how
        _show_cells(here, f"ok  {_count(here)} can be built here{said and f' {said}'}")
    for (missing, remedy), variants in sorted(lacks.items(), key=lambda item: -len(item[1])):
        _show_cells(variants, f"--  {_count(variants)}: {missing}", *((f"      {remedy}",) if remedy else ()))


_WIDTH = 100
"""The most columns for names of cells."""


def _show_cells(variants: Sequence[str], *heads: str) -> None:
    """Show names of cells, as many on a line as fit into 100 columns, or into a narrower terminal."""
    wrapped = textwrap.wrap(
        " ".join(variants),
        min(screen.width_of(sys.stdout) or _WIDTH, _WIDTH),
        break_long_words=False,
        initial_indent="    ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )
    for line in (*heads, *wrapped):
        screen.out(line)


def _count(variants: Sequence[str]) -> str:
    return f"{len(variants)} cell{'' if len(variants) == 1 else 's'}"
