"""Arguments and option types that several commands share."""

import os
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


def default_store() -> Path:
    """Return the store that BUILDER_STORE names, else `builder` in the user's cache directory."""
    named = os.environ.get("BUILDER_STORE")
    if named:
        return Path(named).absolute()
    cache = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification has relative paths ignored.
    base = Path(cache) if cache and Path(cache).is_absolute() else Path.home() / ".cache"
    return base / "builder"


store_option = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    default=default_store,
    help="Where environments and built wheels are kept. [env: BUILDER_STORE; default: ~/.cache/builder]",
)
