"""`builder why`: say why a cell would be built again."""

from pathlib import Path
from typing import Any

import click

from builder import json_text, terminal
from builder import kernel as kernels
from builder.cli import screen
from builder.cli.arguments import kernel_argument, store_option
from builder.cli.asking import ask_of
from builder.cli.selecting import unbundled_option, variants_option
from builder.engine import why_object
from builder.errors import BuilderError, NothingToDoError
from builder.kernel import CONFIG
from builder.plan import choosing, dry_run
from builder.plan.ask import KernelBuild


@click.command()
@kernel_argument
@variants_option("Cell to explain")
@unbundled_option
@store_option
@click.option("--no-isolation", is_flag=True, help="As for a build against the torch of the current environment.")
@click.option("--json", "as_json", is_flag=True, help="The differences as JSON.")
def command(kernel: Path, *, as_json: bool, **given: Any) -> None:
    """Say what changed since a cell was last built: each line is a field of its build record.

    With a source or a header of the kernel in place of DIR: what the last build did with the objects made from it, and
    why.
    """
    root, path = _parted(kernel)
    build = choosing.build_of(kernels.load(root), ask_of(**given))
    if path is not None:
        _explain(build, path, as_json=as_json)
        return
    plans = dry_run.preview(build)
    if as_json:
        terminal.document(json_text.document([plan.to_json() for plan in plans]))
        return
    for plan in plans:
        screen.out(f"{plan.cell.variant}: {plan.text}")
        for change in plan.changes:
            before, after = ("absent" if each is None else str(each) for each in (change.before, change.after))
            screen.out(f"  {change.field}: {before} -> {after}")


def _parted(path: Path) -> tuple[Path, str | None]:
    """Split a path into the kernel's directory and a file in it; None for the directory itself."""
    if not path.is_file() or path.suffix == ".toml":
        return path, None
    whole = path.resolve()
    root = next((folder for folder in whole.parents if (folder / CONFIG).is_file()), None)
    if root is None:
        raise BuilderError(f"'{path}' is in no kernel", help=f"name a file below a folder that has a {CONFIG}")
    return root, whole.relative_to(root).as_posix()


def _explain(build: KernelBuild, path: str, *, as_json: bool) -> None:
    found = [(cell, each) for cell in build.cells for each in why_object.histories(build.kernel, cell, build.ask, path)]
    if not found:
        raise NothingToDoError(
            f"no object of '{path}' is known",
            help="name a source or a header that the last build compiled; 'builder build' compiles it",
        )
    if as_json:
        rows = [{"variant": cell.variant, **history.to_json()} for cell, history in found]
        terminal.document(json_text.document(rows))
        return
    for cell, history in found:
        screen.out(f"{cell.variant}: {history.source}: {history.text}")
        if history.pending:
            screen.out(f"  would be compiled again; changed since: {', '.join(history.pending)}")
