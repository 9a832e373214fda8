"""The options that select cells, such as --variant, --backend, --set and --all."""

from collections.abc import Callable
from typing import Any

import click

from builder.cli import completing
from builder.cli.arguments import ALL, BackendType, Name
from builder.config.values import InvalidValueError, Version
from builder.matrix import SETS, rows
from builder.matrix.selection import Scope
from builder.matrix.variant import SYSTEMS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class TorchType(click.ParamType[Version]):
    """A torch of the matrix, by MAJOR.MINOR."""

    name = "torch"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the version, if a row of the matrix has it."""
        if isinstance(value, Version):
            return value
        try:
            version = Version(value)
        except InvalidValueError as error:
            self.fail(str(error), param, ctx)
        known = sorted({row.torch for row in rows()})
        if version not in known:
            self.fail(f"no row of the matrix has torch {version}: it has {', '.join(map(str, known))}", param, ctx)
        return version

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002  click's signature
        """Return the words that stand for the value in a help text."""
        return "MAJOR.MINOR"


def variants_option(what: str) -> Decorator:
    """Return the option that names cells by their variants."""
    return click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="V",
        shell_complete=completing.variants,
        help=f"{what}, also as KERNEL:V; may be repeated.",
    )


backends_option = click.option(
    "--backend",
    "backends",
    multiple=True,
    type=BackendType(),
    shell_complete=completing.backends,
    help="Only cells of this backend; may be repeated.",
)


def systems_option(what: str) -> Decorator:
    """Return the option that names systems of cells."""
    return click.option("--system", "systems", type=Name("system", SYSTEMS), multiple=True, help=what)


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
torches_option = click.option(
    "--torch",
    "torches",
    type=TorchType(),
    multiple=True,
    help="Only cells built with this torch; may be repeated.",
)
unbundled_option = click.option("--all", "unbundled", is_flag=True, help="Also cells that are not part of a release.")
