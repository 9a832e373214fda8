"""Build orchestrator for GPU kernels: a `build.toml` becomes reproducible wheels."""

__version__ = "0.1.0"
