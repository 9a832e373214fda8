"""`builder pins`: maintain the pinned wheels."""

import os
from pathlib import Path

import click

from builder import pins as pinning
from builder import terminal
from builder.environment import indexes, resolve
from builder.errors import DifferenceError, ToolError
from builder.files import write_atomic

file_option = click.option(
    "--file", type=click.Path(path_type=Path), default=pinning.FILE, help="A pin file, if not the one of builder."
)


@click.group()
def command() -> None:
    """Maintain the pinned wheels that builds use."""


@command.command()
@file_option
@click.option("--online", is_flag=True, help="Also ask the indexes whether they serve what is pinned.")
def check(*, file: Path, online: bool) -> None:
    """Check the pin file: its form, and with --online every hash."""
    pins = pinning.load(file)
    if online:
        _check_online(pins)
    conflicts = tuple(pins.conflicts())
    if conflicts:
        listed = "".join(f"\n  {conflict}" for conflict in conflicts)
        raise DifferenceError(f"environments with two versions of a package{listed}", help="run `builder pins update`")
    terminal.out(f"{len(pins.wheels)} pinned wheels in {len(pins.parts)} parts: all good")


def _check_online(pins: pinning.Pins) -> None:
    env = indexes.read(os.environ).env
    check = resolve.verify(pins, env=env, progress=lambda release: terminal.err(f"asking for {release}"))
    unknown = "".join(
        f"\n  {wheel.file}{'' if wheel.index is None else f' at {wheel.index}'}" for wheel, _ in check.unknown
    )
    if check.wrong:
        wrong = "".join(
            f"\n  {wheel.file}\n    pinned {wheel.sha256}\n    index  {sha256 or 'does not have this file'}"
            for wheel, sha256 in check.wrong
        )
        rest = f"\nand {len(check.unknown)} could not be checked{unknown}" if unknown else ""
        raise DifferenceError(
            f"{len(check.wrong)} of {len(pins.wheels)} pins differ from what the index serves{wrong}{rest}",
            help="a published file never changes: find out why before you run `builder pins update`",
        )
    if check.unknown:
        reasons = dict.fromkeys(line for _, said in check.unknown for line in said.splitlines()[-1:])
        quoted = "".join(f"\n  uv: {reason}" for reason in reasons)
        raise ToolError(
            f"{len(check.unknown)} of {len(pins.wheels)} pins could not be checked, the others are right"
            f"{unknown}{quoted}",
            help="try again where these indexes can be reached",
        )


@command.command()
@file_option
@click.option("--part", "parts", multiple=True, metavar="NAME", help="Update this part only; repeatable.")
@click.option("--dry-run", is_flag=True, help="Show what would change; write nothing.")
def update(*, file: Path, parts: tuple[str, ...], dry_run: bool) -> None:
    """Resolve the pin file again with uv; parts on unreachable indexes stay unchanged."""
    pins = pinning.load(file)
    names = tuple(dict.fromkeys(part.name for part in pins.parts))
    unknown = [part for part in parts if part not in names]
    if unknown:
        raise click.BadParameter(f"'{unknown[0]}' is not a part; there are {', '.join(names)}", param_hint="--part")
    todo = tuple(resolve.targets(pins, parts=frozenset(parts)))
    resolutions = resolve.resolve_all(pins, todo, env=indexes.read(os.environ).env)
    failed = tuple(resolution for resolution in resolutions if resolution.error is not None)
    for resolution in failed:
        _tell(pins, resolution)
    if failed and len(failed) == len(resolutions):
        raise ToolError(
            f"none of {len(resolutions)} resolutions succeeded\n{failed[0].error}", help="is an index within reach?"
        )
    new = resolve.updated(pins, resolutions)
    _show_changes(pins, new)
    if not dry_run:
        write_atomic(file, pinning.to_toml(new).encode())


def _tell(pins: pinning.Pins, resolution: resolve.Resolution) -> None:
    part, system, python = pins.parts[resolution.part], resolution.system, resolution.python
    has = "keeps its pins" if part.files(system, python) is not None else "stays without pins"
    reason = (resolution.error or "").splitlines()[-1]
    label = " ".join((part.name, part.version or "", *part.compute, system, python))
    terminal.err(f"{label} {has}: {reason}")


def _show_changes(old: pinning.Pins, new: pinning.Pins) -> None:
    for file in sorted(old.wheels.keys() - new.wheels.keys()):
        terminal.out(f"- {file}")
    for file in sorted(new.wheels.keys() - old.wheels.keys()):
        terminal.out(f"+ {file}")
    for file in sorted(old.wheels.keys() & new.wheels.keys()):
        if old.wheels[file].sha256 != new.wheels[file].sha256:
            terminal.out(f"! {file}: {old.wheels[file].sha256} is now {new.wheels[file].sha256}")
    if old.wheels == new.wheels:
        terminal.out("nothing to change")
