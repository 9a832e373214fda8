"""Kernels of tests/data/kernels, each with the cell that this machine builds without a GPU, and kernels of a text."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from builder.config import parse
from builder.config.text import Source
from builder.kernel import Kernel
from tests.paths import TESTS

KERNELS = TESTS / "data/kernels"
TINY, TINY_CELL = KERNELS / "tiny", "torch-stable-abi210-cpu-x86_64-linux"
"""An op of torch with its stable ABI: six seconds of a core for a build, of which most are headers of torch."""
PLAIN, PLAIN_CELL = KERNELS / "plain", "ctypes-cpu-x86_64-linux"
"""A library without a framework: two seconds of a core, for what has nothing to do with torch."""

linux = pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux")
"""The mark of a test that builds one of these cells."""


def of_text(text, root=Path()):
    """Return a kernel of which there is only the config."""
    source = Source(name="build.toml", text=text)
    return Kernel(root=root, config=parse(source), source=source)


def copied(kernel, folder):
    """Copy a kernel to a place where a test may change it."""
    return Path(shutil.copytree(kernel, folder / kernel.name))
