"""Arguments and option types that several commands share."""

from pathlib import Path
from typing import Any

import click

from builder.config.values import Backend

kernel_argument = click.argument("kernel", metavar="[DIR]", default=".", type=click.Path(path_type=Path))
"""The kernel's directory, the current one by default."""


class BackendType(click.Choice[str]):
    """The name of a backend, as a `Backend`."""

    name = "backend"

    def __init__(self) -> None:
        super().__init__([backend.value for backend in Backend])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the backend that `value` names."""
        if isinstance(value, Backend):
            return value
        return Backend(super().convert(value, param, ctx))
