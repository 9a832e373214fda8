"""Environments of pinned wheels, made in a store of a test with nothing of this machine's own settings."""

import os
import sys
from pathlib import Path

from builder.environment import indexes, pinned
from builder.environment.fetch import Installer
from builder.loadtest import LoadTestPackages
from builder.pins import PinSet
from tests.given.files import write

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"
PYTHON = Path(sys.executable)
NOWHERE = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "5"}
"""Settings that name an index out of reach."""
_TORCH = """
import contextlib
with contextlib.suppress(ImportError):
    import typing_extensions
add = max
"""


def pinset(*wheels, system="x86_64-linux"):
    return PinSet(TAG, system, tuple(sorted(wheels, key=lambda wheel: wheel.name)))


def make(root, pins, environ, *, store="store", python=PYTHON, **how):
    """Make an environment in a store below `root`, by these settings of pip and uv."""
    base = {"PATH": os.environ["PATH"], "HOME": str(root), "PIP_CONFIG_FILE": os.devnull, "UV_HTTP_RETRIES": "0"}
    installer = Installer(finders=indexes.read({**base, **environ}), **how)
    return pinned.make(pins, store_root=root / store, python=python, installer=installer)


def made_up_torch(folder):
    """Return, as a load test has them, a Python and a made-up torch: an import of the real one takes a second."""
    site = write(folder / "made up torch", {"torch.py": _TORCH})
    return {"python": Path(sys._base_executable), "packages": LoadTestPackages(folders=(site,))}  # noqa: SLF001
