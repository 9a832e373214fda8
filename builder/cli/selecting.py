"""Options that name cells of a kernel, and the cells that they name."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from builder.cli import completing
from builder.cli.arguments import ALL, BackendType, Name
from builder.kernel import Kernel
from builder.matrix import SETS, Cell
from builder.matrix.selection import Scope, to_build

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def variants_option(what: str) -> Decorator:
    """Return the option that names cells by their variants."""
    return click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="V",
        shell_complete=completing.variants,
        help=f"{what}; may be repeated.",
    )


backends_option = click.option(
    "--backend",
    "backends",
    multiple=True,
    type=BackendType(),
    shell_complete=completing.backends,
    help="Only cells of this backend; may be repeated.",
)


def _sets(_ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    return SETS if ALL in value else value or Scope().sets


sets_option = click.option(
    "--set",
    "sets",
    type=Name("set", (*SETS, ALL)),
    multiple=True,
    callback=_sets,
    help=f"Rows to look at; may be repeated. Default: {SETS[0]}.",
)
unbundled_option = click.option("--all", "unbundled", is_flag=True, help="Also cells that are not part of a release.")


def cells(kernel: Kernel, scope: Scope, *, variants: Sequence[str] = ()) -> tuple[Cell, ...]:
    """Return the cells that options name, of noarch wheels the one of this machine.

    Raises:
        BuilderError: the scope names a backend that the kernel does not have.
        NothingToDoError: there is no cell; the reasons are given.
    """
    from builder import toolchain  # noqa: PLC0415  start-up time: showing the matrix needs no tool

    return to_build(kernel, scope, variants=variants, here=toolchain.system())
