"""The ask of a command line."""

import os
from pathlib import Path
from typing import Any

from builder.cli.arguments import taken
from builder.compile_cache import CacheOptions
from builder.matrix.selection import Scope
from builder.plan.ask import Ask
from builder.store import Store
from builder.wheel.options import BuildOptions


def ask_of(*, store: Path, no_isolation: bool = False, no_cache: bool = False, **given: Any) -> Ask:
    """Return what options ask for; each is named as a field of the ask, its scope, its cache or its build options."""
    cache = CacheOptions(**taken(CacheOptions, given))
    return Ask(
        scope=Scope(**taken(Scope, given)),
        options=BuildOptions(**taken(BuildOptions, given)),
        store=Store(store),
        environ=dict(os.environ),
        isolation=not no_isolation,
        cache=None if no_cache else cache,
        **given,
    )
