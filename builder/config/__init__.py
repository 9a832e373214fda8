"""Read a `build.toml` into a `Config`."""

from dataclasses import dataclass, replace

from builder.config import detect, v1, v2, v3, v4, v5
from builder.config.decode import decode
from builder.config.dump import dump
from builder.config.v5 import Config
from builder.config.values import Backend, Framework, InvalidValueError, KernelName, Version
from builder.source import Source

__all__ = ["SCHEMAS", "Backend", "Config", "Framework", "KernelName", "Parsed", "Version", "dump", "parse", "read"]

Old = v1.Config | v2.Config | v3.Config | v4.Config
AnyConfig = Old | Config

SCHEMAS: dict[int, type[AnyConfig]] = {1: v1.Config, 2: v2.Config, 3: v3.Config, 4: v4.Config, 5: Config}


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
    config = decode(SCHEMAS[schema], table, source, current=Config, **_remedy(schema))
    try:
        while not isinstance(config, Config):
            config = _licensed(config, license).upgrade()
    except InvalidValueError as error:
        path = error.path or ("general",)
        problem = source.problem(error.code, str(error), path=path, key=bool(error.path), help=error.help)
        raise source.error(problem) from error
    return Parsed(config=config, schema=schema)


def _remedy(schema: int) -> dict[str, str]:
    """Return what to do about a key that a schema does not have yet: schema 4 lacks only the edition."""
    if schema < v5.EDITION - 1:
        return {}
    return {"later": f"that key came with edition {v5.EDITION}: add 'edition = {v5.EDITION}' to [general]"}


def _licensed(config: Old, license: str | None) -> Old:  # noqa: A002  the key it stands for
    if isinstance(config, v3.Config) and config.general.license is None:
        return replace(config, general=replace(config.general, license=license))
    return config
