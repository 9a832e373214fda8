"""Read a `build.toml` into a `Config`."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from builder.config import key_rules, v5
from builder.config.decode import decode
from builder.config.shape import fields
from builder.config.text import Source
from builder.config.v5 import Config
from builder.config.values import (
    Backend,
    Framework,
    InvalidValueError,
    KernelName,
    LoadTestRule,
    ToolchainChoice,
    Version,
)

__all__ = [
    "Backend",
    "Config",
    "Framework",
    "KernelName",
    "LoadTestRule",
    "Parsed",
    "ToolchainChoice",
    "Version",
    "parse",
    "read",
    "schema_type",
]

PREVIEW = 6
"""The edition after the current one; its form may still change."""
_SINCE_4 = ("version", "license", "source")
"""Keys of `[general]` since schema 4; the first two are optional in schema 3."""
_LATER = {"later": f"that key came with edition {v5.EDITION}: add 'edition = {v5.EDITION}' to [general]"}
"""The remedy for a key that schema 4 does not have: only the edition is missing."""


def schema_type(number: int) -> Any:
    """Return the class of a schema, imported when needed; schema 4 is edition 5 without the new keys."""
    if number == PREVIEW:
        from builder.config import v6  # noqa: PLC0415  few files are in it

        return v6.Config
    return Config if number in (4, v5.EDITION) else importlib.import_module(f"builder.config.v{number}").Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A config in the current schema, with the schema number of its file."""

    config: Config
    schema: int


def parse(source: Source, *, license: str | None = None) -> Config:
    """Return the kernel that a config of any schema describes.

    Raises:
        ConfigError: with every problem of the text.
    """
    return read(source, license=license).config


def read(source: Source, *, license: str | None = None) -> Parsed:
    """Return the kernel that a config of any schema describes, with the number of that schema.

    `license` is used if a file of an old schema names none.

    Raises:
        ConfigError: with every problem of the text.
    """
    table = source.table()
    schema = detect_schema(table, source)
    type_, old = schema_type(schema), schema < v5.EDITION
    later = _LATER if schema >= v5.EDITION - 1 else {}
    config: Any = decode(type_, table, source, current=Config if old else type_, old=old, **later)
    try:
        while type(config) is not Config:
            if getattr(config.general, "license", "") is None:  # as in schema 3
                config = replace(config, general=replace(config.general, license=license))
            config = config.upgrade()
    except InvalidValueError as error:
        path = error.path or ("general",)
        problem = source.problem(error.code, str(error), path=path, key=bool(error.path), help=error.help)
        raise source.error(problem) from error
    torch = config.torch
    if old and torch is not None and isinstance(torch.stable_abi, Version):
        # The one stable ABI of an old file applies to every backend.
        each = dict.fromkeys(config.general.backends, torch.stable_abi)
        config = replace(config, torch=replace(torch, stable_abi=each))
    broken = [
        source.problem(error.code, str(error), path=error.path, help=error.help) for error in key_rules.check(config)
    ]
    if broken:
        raise source.error(*broken)
    return Parsed(config=config, schema=schema)


def detect_schema(table: Mapping[str, Any], source: Source) -> int:
    """Return the number of a document's schema.

    Raises:
        ConfigError: it names an edition that does not exist.
    """
    general, torch = _tables(table, "general"), _tables(table, "torch")
    if "edition" in general:
        return _edition(general["edition"], source)
    is_4 = "torch-noarch" in table or "stable-abi" in torch or any(key in general for key in _SINCE_4)
    if is_4 or not isinstance(table.get("general"), dict):
        return 4
    if "backends" in general:
        return 3
    kernels = [kernel for kernel in _tables(table, "kernel").values() if isinstance(kernel, dict)]
    if any("backend" in kernel for kernel in kernels):
        return 2
    if any("language" in kernel for kernel in kernels) or "universal" in torch:
        return 1
    from builder.config import v1  # noqa: PLC0415  only a file of an older schema needs it

    # Components may omit the language, which has a default; in schema 2 each has a backend.
    known = {item.key for item in fields(v1.Component)}
    is_plain = set(general) <= {item.key for item in fields(v1.General)} and all(set(each) <= known for each in kernels)
    return 1 if kernels and is_plain else 2


def _edition(edition: object, source: Source) -> int:
    if not isinstance(edition, int) or isinstance(edition, bool) or edition in {v5.EDITION, PREVIEW}:
        return (
            PREVIEW if edition == PREVIEW else v5.EDITION
        )  # a value of the wrong type is reported with the file's other problems
    found = str(edition) if abs(edition) < 10**18 else "a number of many digits"
    if edition > v5.EDITION:
        message = f"edition {found} is newer than {v5.EDITION} and the preview of {PREVIEW}, which this builder reads"
        remedy = "this file needs a newer builder: pip install --upgrade kernel-wheel-builder"
    else:
        message = f"there is no edition {found}: {v5.EDITION} is the first"
        remedy = f"write 'edition = {v5.EDITION}', or remove the line if the file is older"
    raise source.error(source.problem("B004", message, path=("general", "edition"), help=remedy))


def _tables(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key)
    return value if isinstance(value, dict) else {}
