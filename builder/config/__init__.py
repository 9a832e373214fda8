"""Read a `build.toml` into a `Config`."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from builder.config import rules, v5
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
"""The edition after the current one, whose form may still change."""
_SINCE_4 = ("version", "license", "source")
"""Keys of `[general]` that schema 4 brought; the first two are optional in schema 3."""


def schema_type(number: int) -> Any:
    """Return the class of a schema, imported for a file that is in it; schema 4 is edition 5 without the new keys."""
    if number == PREVIEW:
        from builder.config import v6  # noqa: PLC0415  few files are in it

        return v6.Config
    return Config if number in (4, v5.EDITION) else importlib.import_module(f"builder.config.v{number}").Config


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A config in the current schema, and the number of the one its file is in."""

    config: Config
    schema: int


def parse(source: Source, *, license: str | None = None) -> Config:  # noqa: A002  the key it stands for
    """Return the kernel that a config of any schema describes.

    Raises:
        ConfigError: with every problem of the text.
    """
    return read(source, license=license).config


def read(source: Source, *, license: str | None = None) -> Parsed:  # noqa: A002  the key it stands for
    """Return the kernel that a config of any schema describes, and which schema that is.

    `license` is what a file of an old schema has that names none.

    Raises:
        ConfigError: with every problem of the text.
    """
    table = source.table()
    schema = detect_schema(table, source)
    type_, old = schema_type(schema), schema < v5.EDITION
    config: Any = decode(type_, table, source, current=Config if old else type_, old=old, **_remedy(schema))
    try:
        while type(config) is not Config:
            config = _licensed(config, license).upgrade()
    except InvalidValueError as error:
        path = error.path or ("general",)
        problem = source.problem(error.code, str(error), path=path, key=bool(error.path), help=error.help)
        raise source.error(problem) from error
    config = _with_abi_of_each_backend(config) if old else config
    broken = [source.problem(error.code, str(error), path=error.path, help=error.help) for error in rules.check(config)]
    if broken:
        raise source.error(*broken)
    return Parsed(config=config, schema=schema)


def _remedy(schema: int) -> dict[str, str]:
    """Return what to do about a key that a schema does not have yet: schema 4 lacks only the edition."""
    if schema < v5.EDITION - 1:
        return {}
    return {"later": f"that key came with edition {v5.EDITION}: add 'edition = {v5.EDITION}' to [general]"}


def _with_abi_of_each_backend(config: Config) -> Config:
    """Return the config with a table for the one stable ABI that a file names for every backend."""
    torch = config.torch
    if torch is None or not isinstance(torch.stable_abi, Version):
        return config
    return replace(config, torch=replace(torch, stable_abi=dict.fromkeys(config.general.backends, torch.stable_abi)))


def _licensed(config: Any, license: str | None) -> Any:  # noqa: A002  the key it stands for
    from builder.config import v3  # noqa: PLC0415  only a file of an older schema needs it

    if isinstance(config, v3.Config) and config.general.license is None:
        return replace(config, general=replace(config.general, license=license))
    return config


def detect_schema(table: Mapping[str, Any], source: Source) -> int:
    """Return the number of the schema that a document is in.

    Raises:
        ConfigError: it names an edition that does not exist.
    """
    general, torch = _tables(table, "general"), _tables(table, "torch")
    if "edition" in general:
        _check_edition(general["edition"], source)
        return PREVIEW if general["edition"] == PREVIEW else v5.EDITION
    is_4 = "torch-noarch" in table or "stable-abi" in torch or any(key in general for key in _SINCE_4)
    if is_4 or not isinstance(table.get("general"), dict):
        return 4
    if "backends" in general:
        return 3
    kernels = [kernel for kernel in _tables(table, "kernel").values() if isinstance(kernel, dict)]
    if any("backend" in kernel for kernel in kernels):
        return 2
    is_old = any("language" in kernel for kernel in kernels) or "universal" in torch
    return 1 if is_old or (kernels and _is_plain_1(general, kernels)) else 2


def _is_plain_1(general: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]]) -> bool:
    """Whether components leave the language to its default: in schema 2 each has a backend."""
    from builder.config import v1  # noqa: PLC0415  only a file of an older schema needs it

    known = {item.key for item in fields(v1.Component)}
    return set(general) <= {item.key for item in fields(v1.General)} and all(set(kernel) <= known for kernel in kernels)


def _check_edition(edition: object, source: Source) -> None:
    if not isinstance(edition, int) or isinstance(edition, bool) or edition in {v5.EDITION, PREVIEW}:
        return  # a wrong type is one problem among those of the file
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
