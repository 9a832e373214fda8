"""Read a `build.toml` into a `Config`."""

from builder.config.v5 import Config
from builder.config.values import Backend, Framework, KernelName, Version

__all__ = ["Backend", "Config", "Framework", "KernelName", "Version"]
