"""Find the templates, the CMake modules and the data files."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_INSTALLED = _PACKAGE / "_resources"
_ROOT = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent

CHECKOUT = None if _INSTALLED.is_dir() else _ROOT
"""The repository of this builder; None if builder is installed."""
TEMPLATES = _ROOT / "templates"
CMAKE = _ROOT / "cmake"
DATA = _PACKAGE / "data"


def place(path: str) -> Path:
    """Return where a file or folder of the repository is, such as `builder/data` or `cmake`."""
    top, _, rest = path.partition("/")
    return (_PACKAGE if top == "builder" else _ROOT / top) / rest
