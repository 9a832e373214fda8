"""`builder attest`: a statement per wheel, for CI to sign."""

from dataclasses import replace
from pathlib import Path

import click

from builder import terminal
from builder.cli.arguments import PATH, kernel_option, wheels_argument
from builder.files import write_atomic
from builder.make import wheel_record as record
from builder.publish import bundle
from builder.wheel import kernel_wheel
from builder.wheel.statement import BUILDER_ID, Origin, statement


@click.command()
@wheels_argument
@click.option("--output", type=PATH, help="Directory of the statements; without it, next to each wheel.")
@kernel_option("The kernel's directory, for its commit.")
@click.option("--commit", metavar="SHA", help="Commit that the wheels were built from; all of its digits.")
@click.option("--builder-id", default=BUILDER_ID, metavar="URI", help="Who built: in CI, the workflow.")
@click.option("--invocation", metavar="URI", help="The CI run that built them.")
def command(
    wheels: tuple[Path, ...],
    output: Path | None,
    kernel: Path | None,
    commit: str | None,
    builder_id: str,
    invocation: str | None,
) -> None:
    """Write the in-toto statement of each wheel: WHEEL.intoto.json, with SLSA provenance, to be signed."""
    origin = bundle.origin(kernel=kernel, commit=commit)
    if kernel is not None and origin is None:
        terminal.err(f"warning: '{kernel}' is not in a git checkout, so no commit is named")
    stated = Origin(
        commit=None if origin is None else origin.id,
        dirty=origin is not None and origin.dirty,
        builder_id=builder_id,
        invocation=invocation,
    )
    for wheel in kernel_wheel.read_all(wheels):
        path = wheel.wheel.path
        sandboxed = record.sandboxed(path, sha256=wheel.sha256)
        target = (path.parent if output is None else output) / f"{path.name}.intoto.json"
        write_atomic(target, statement(wheel, replace(stated, sandbox=sandboxed)))
        terminal.out(str(target))
