"""Environments of pinned wheels, made in a store of a test with nothing of this machine's own settings."""

import os
import sys
from pathlib import Path

from builder.environment import indexes, pinned
from builder.environment.fetch import Installer
from builder.pins import PinSet

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
PYTHON = Path(sys.executable)
NOWHERE = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "5"}
"""Settings that name an index out of reach."""


def pinset(*wheels, system="x86_64-linux"):
    return PinSet(TAG, system, tuple(sorted(wheels, key=lambda wheel: wheel.name)))


def make(root, pins, environ, *, store="store", python=PYTHON, **how):
    """Make an environment in a store below `root`, by these settings of pip and uv."""
    base = {"PATH": os.environ["PATH"], "HOME": str(root), "PIP_CONFIG_FILE": os.devnull, "UV_HTTP_RETRIES": "0"}
    installer = Installer(finders=indexes.read({**base, **environ}), **how)
    return pinned.make(pins, store_root=root / store, python=python, installer=installer)
