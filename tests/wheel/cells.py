"""A kernel for tests of wheels, and its cells."""

from builder import matrix
from builder.config import read
from builder.config.text import Source

TEXT = """
[general]
name = "demo-kernel"
version = 1
edition = 5
license = "MIT"
backends = ["cpu", "cuda"]
{general}

{framework}

[kernel.one]
backend = "cpu"
src = ["a.cpp"]
depends = []

[kernel.two]
backend = "cuda"
src = ["a.cu"]
depends = []
"""


def cells(*, framework, general=""):
    """Return the config of the kernel, and its cells by name."""
    config = read(Source(name="build.toml", text=TEXT.format(framework=framework, general=general))).config
    rows = [row for row in matrix.rows() if row.set in ("release", "all")]
    return config, {cell.variant: cell for cell in matrix.select(config, rows)}
