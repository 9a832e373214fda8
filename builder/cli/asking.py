"""The ask of a command line, and the options of the cache in it."""

import os
from pathlib import Path
from typing import Any

import click

from builder.cli.arguments import SIZE, EnumType, taken, together
from builder.compile_cache import Access
from builder.matrix.selection import Scope
from builder.plan.ask import Ask
from builder.store import Store
from builder.wheel.options import BuildOptions

cache_options = together(
    click.option(
        "--cache",
        metavar="URL",
        envvar="BUILDER_CACHE",
        callback=lambda _ctx, _param, value: value or None,
        help="Also take compiled files from here: a folder, redis://HOST:PORT/0 or s3://BUCKET/PREFIX. "
        "[env: BUILDER_CACHE]",
    ),
    click.option(
        "--cache-access",
        type=EnumType(Access, name="access"),
        envvar="BUILDER_CACHE_ACCESS",
        default=Access.READ.value,
        help="What to do with --cache: read it, write to it and read no cache, or both. "
        "[env: BUILDER_CACHE_ACCESS; default: read]",
    ),
    click.option(
        "--cache-size",
        type=SIZE,
        envvar="BUILDER_CACHE_SIZE",
        default="10G",
        help="Most bytes of compiled files in the store. [env: BUILDER_CACHE_SIZE; default: 10G]",
    ),
    click.option("--no-cache", is_flag=True, help="Compile every file, and keep none."),
)
"""The cache of compiled files; the options are named like fields of `Ask`."""


def ask_of(*, store: Path, no_isolation: bool = False, **given: Any) -> Ask:
    """Make an ask from options; each is named like a field of the ask, its scope or its build options."""
    return Ask(
        scope=Scope(**taken(Scope, given)),
        options=BuildOptions(**taken(BuildOptions, given)),
        store=Store(store),
        environ=dict(os.environ),
        isolation=not no_isolation,
        **given,
    )
