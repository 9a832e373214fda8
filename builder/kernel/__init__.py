"""Kernel: a directory with a `build.toml`."""

from dataclasses import dataclass
from pathlib import Path

from builder.config import Config, read
from builder.config.text import Source

CONFIG = "build.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel directory, with its config."""

    root: Path
    config: Config
    source: Source
    schema: int = 5
    """The schema of the file; `config` is always in the current one."""


def load(directory: Path, *, license: str | None = None) -> Kernel:
    """Read the kernel in `directory`; `license` is used if a config of an old schema names none.

    Raises:
        ConfigError: the config cannot be read or has problems; the error lists all of them.
    """
    source = Source.read(directory / CONFIG, name=str(directory / CONFIG))
    parsed = read(source, license=license)
    return Kernel(root=directory, config=parsed.config, source=source, schema=parsed.schema)
