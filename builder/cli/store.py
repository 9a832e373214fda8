"""`builder store`: list, verify and clean the store."""

import time
from datetime import datetime, timezone
from pathlib import Path

import click

from builder import json_text, terminal
from builder.cli.arguments import AGE, SIZE, store_option
from builder.compile_cache.folder import Folder
from builder.errors import DifferenceError
from builder.store import COMPILED, Damaged, Store, items
from builder.wording import size


@click.group()
def command() -> None:
    """List, verify and clean the store."""


@command.command("list")
@store_option
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def list_(store: Path, as_json: bool) -> None:
    """List the entries of the store, the least recently used first."""
    found = list(items.summed(items.items(Store(store))))
    if as_json:
        rows = [
            {"kind": item.kind, "name": item.name, "path": str(item.path), "bytes": item.size, "used": _when(item.used)}
            for item in found
        ]
        terminal.document(json_text.document(rows))
        return
    for item in found:
        wheels = sorted(path.name for path in item.path.glob("*.whl")) if item.kind == "wheel" else [item.name]
        shown = wheels[0] if wheels else item.path.name
        terminal.out(f"{_when(item.used)}  {size(item.size):>10}  {item.kind:11}  {shown}")
    terminal.err(f"{len(found)} items, {size(sum(item.size for item in found))}, in {store}")


def _when(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=timezone.utc).strftime("%Y-%m-%d %H:%M")


@command.command()
@store_option
@click.option("--repair", is_flag=True, help="Remove damaged entries; they are built again when needed.")
def verify(store: Path, repair: bool) -> None:
    """Read every stored wheel and compiled file, and compare it with its digest."""
    kept = Store(store)
    found = list(kept.entries())
    damaged = [entry for entry in found if isinstance(entry, Damaged)]
    for entry in damaged:
        terminal.out(f"{entry.key}: {entry.why}")
        if repair:
            with kept.lock(entry.key):
                kept.remove(entry.key)
    terminal.err(f"{len(found)} wheels, {len(damaged)} damaged{' and taken out' if repair and damaged else ''}")
    compiled = Folder(root=store / COMPILED)
    kept_files, wrong = compiled.verify()
    terminal.err(f"{kept_files} compiled files, {wrong} damaged{' and taken out' if wrong else ''}")
    if damaged and not repair:
        raise DifferenceError(
            f"{len(damaged)} entries of '{store}' are damaged",
            help="builder store verify --repair takes them out; a build does so by itself",
        )


@command.command()
@store_option
@click.option("--max-age", type=AGE, help="Remove entries that were not used for this long, such as 30d or 12h.")
@click.option("--max-size", type=SIZE, help="Then remove the least recently used until this much is left, such as 20G.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed.")
def gc(store: Path, max_age: float | None, max_size: int | None, dry_run: bool) -> None:
    """Remove the least recently used wheels, environments, compiled files and logs.

    Entries that are in use stay.
    """
    if max_age is None and max_size is None:
        raise click.UsageError("say what may go: --max-age, --max-size, or both")
    kept = Store(store)
    if not dry_run:
        kept.prepare()
    removed = items.collect(kept, now=time.time(), max_age=max_age, max_size=max_size, dry_run=dry_run)
    for item in items.summed(removed):
        terminal.out(f"{item.kind} {item.name}")
    word = "would be removed" if dry_run else "removed"
    terminal.err(f"{len(removed)} items, {size(sum(item.size for item in removed))} {word}")
