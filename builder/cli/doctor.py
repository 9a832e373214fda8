"""`builder doctor`."""

import json
import os
from pathlib import Path

import click

from builder import doctor, matrix
from builder.cli.arguments import store_option
from builder.store import Store


@click.command()
@store_option
@click.option("--set", "name", type=click.Choice(matrix.SETS), default="release", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(store: Path, name: str, as_json: bool) -> None:
    """Show what this machine has, which cells it can build, and what each other one lacks."""
    facts = list(doctor.facts(os.environ, Store(store)))
    rows = tuple(row for row in matrix.rows() if row.set == name and row.variant is not None)
    verdicts = list(doctor.verdicts(rows, os.environ))
    if as_json:
        click.echo(json.dumps({"facts": _facts_json(facts), "cells": _cells_json(verdicts)}, indent=2))
        return
    for fact in facts:
        mark, text = ("ok", fact.found) if fact.found is not None else ("--", f"missing; {fact.help}")
        click.echo(f"{mark:3} {fact.name:18} {text}")
    click.echo()
    here = [verdict for verdict in verdicts if verdict.missing is None]
    for verdict in verdicts:
        mark = "ok" if verdict.missing is None else "--"
        click.echo(f"{mark:3} {verdict.row.variant or '':40} {_reason(verdict)}".rstrip())
    click.echo(f"\n{len(here)} of {len(verdicts)} cells of the {name} set can be built here", err=True)


def _reason(verdict: doctor.Verdict) -> str:
    if verdict.missing is None:
        return ""
    return f"needs: {verdict.missing}" + (f"; {verdict.help}" if verdict.help else "")


def _facts_json(facts: list[doctor.Fact]) -> list[dict[str, object]]:
    return [{"name": fact.name, "found": fact.found, "help": fact.help or None} for fact in facts]


def _cells_json(verdicts: list[doctor.Verdict]) -> list[dict[str, object]]:
    return [
        {
            "variant": verdict.row.variant,
            "buildable": verdict.missing is None,
            "missing": verdict.missing,
            "help": verdict.help,
        }
        for verdict in verdicts
    ]
