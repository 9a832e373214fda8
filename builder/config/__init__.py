"""Read a `build.toml` into a `Config`."""

import importlib
from dataclasses import dataclass, replace
from typing import Any, Protocol

from builder.config import detect, rules, v5
from builder.config.decode import decode
from builder.config.dump import dump
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
    "dump",
    "parse",
    "read",
    "schema_type",
]


class Old(Protocol):
    """A config of an older schema."""

    def upgrade(self) -> "Old | Config":
        """Return the same kernel in the next schema."""


def schema_type(number: int) -> Any:
    """Return the class of a schema; another than the current one is only imported for a file that is in it."""
    if number == detect.PREVIEW:
        from builder.config import v6  # noqa: PLC0415

        return v6.Config
    return Config if number == v5.EDITION else importlib.import_module(f"builder.config.v{number}").Config


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
    schema = detect.schema(table, source)
    type_ = schema_type(schema)
    current = Config if schema <= v5.EDITION else type_
    config: Old | Config = decode(type_, table, source, current=current, **_remedy(schema))
    try:
        while not isinstance(config, Config):
            config = _licensed(config, license).upgrade()
    except InvalidValueError as error:
        path = error.path or ("general",)
        problem = source.problem(error.code, str(error), path=path, key=bool(error.path), help=error.help)
        raise source.error(problem) from error
    broken = [source.problem(error.code, str(error), path=error.path, help=error.help) for error in rules.check(config)]
    if broken:
        raise source.error(*broken)
    return Parsed(config=config, schema=schema)


def _remedy(schema: int) -> dict[str, str]:
    """Return what to do about a key that a schema does not have yet: schema 4 lacks only the edition."""
    if schema < v5.EDITION - 1:
        return {}
    return {"later": f"that key came with edition {v5.EDITION}: add 'edition = {v5.EDITION}' to [general]"}


def _licensed(config: Old, license: str | None) -> Old:  # noqa: A002  the key it stands for
    from builder.config import v3  # noqa: PLC0415  only a file of an older schema needs it

    if isinstance(config, v3.Config) and config.general.license is None:
        return replace(config, general=replace(config.general, license=license))
    return config
