"""Read a `build.toml` into a `Config`."""

from builder.config import v4, v5
from builder.config.decode import decode
from builder.config.v5 import Config
from builder.config.values import Backend, Framework, KernelName, Version
from builder.source import Source

__all__ = ["Backend", "Config", "Framework", "KernelName", "Version", "parse", "schema_of"]


def parse(source: Source) -> Config:
    """Return the kernel that a config of any schema describes.

    Raises:
        ConfigError: with every problem of the text.
    """
    table = source.table()
    if schema_of(source) == v5.EDITION:
        return decode(v5.Config, table, source)
    return decode(v4.Config, table, source).upgrade()


def schema_of(source: Source) -> int:
    """Return the number of the schema that a text is in."""
    return v5.EDITION if source.has(("general", "edition")) else 4
