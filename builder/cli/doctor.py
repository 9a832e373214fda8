"""`builder doctor`: show this machine, its toolchains and the cells it can build."""

import json
import os
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from builder import matrix, terminal
from builder.cli.arguments import store_option
from builder.cli.selecting import sets_option
from builder.engine import buildable, doctor
from builder.store import Store


@click.command()
@store_option
@sets_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(store: Path, sets: tuple[str, ...], as_json: bool) -> None:
    """Show what this machine has, which cells it can build, and what each other one lacks."""
    facts = list(doctor.facts(os.environ, Store(store)))
    rows = tuple(row for row in matrix.rows() if row.set in sets and row.variant is not None)
    support = list(buildable.row_support(rows, os.environ))
    if as_json:
        terminal.document(json.dumps({"facts": _facts_json(facts), "cells": _cells_json(support)}, indent=2), end="\n")
        return
    for fact in facts:
        mark, text = ("ok", fact.found) if fact.found is not None else ("--", f"missing; {fact.help}")
        terminal.out(f"{mark:3} {fact.name:18} {text}")
    terminal.out()
    for line in _cells_text(support):
        terminal.out(line)
    here = sum(row.missing is None for row in support)
    terminal.err(f"\n{here} of {len(support)} cells of {_listed(sets)} can be built here")


def _cells_text(support: Sequence[buildable.RowSupport]) -> Iterator[str]:
    """Yield the cells that can be built, then the others by what they lack: each reason once, most cells first."""
    lacks: dict[tuple[str, str], list[str]] = {}
    ways: dict[str, list[str]] = {}
    for row in support:
        alike = ways.setdefault(row.how, []) if row.missing is None else None
        if alike is None:
            alike = lacks.setdefault((row.missing or "", row.help or ""), [])
        alike.append(row.row.variant or "")
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


def _cells_json(support: list[buildable.RowSupport]) -> list[dict[str, object]]:
    return [
        {
            "variant": row.row.variant,
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
