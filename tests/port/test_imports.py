"""The lines of a project that import its extension, each said once with what to write in its place."""

import pytest

from builder.port import port
from tests.port.projects import SIMPLE, recorded


def lines_to_change(tmp_path, files):
    text = SIMPLE.replace('packages=["scale_it"]', 'packages=["scale_it", "scale_it.sub"]')
    found = port(recorded(tmp_path, text, files={"scale_it/sub/__init__.py": "", **files}), tmp_path)
    return [item for item in found.remaining if "in place of" in item]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("scale_it/a.py", "from . import _C"),
        ("scale_it/a.py", "    from . import x, _C as C"),
        ("scale_it/a.py", "from . import (\n    x,\n    _C,\n)"),
        ("scale_it/a.py", "from ._C import scale"),
        ("scale_it/sub/a.py", "from .. import _C"),
        ("scale_it/sub/a.py", "from .._C import scale"),
    ],
)
def test_a_relative_import_of_the_extension_is_named(tmp_path, file, line):
    dots = "." * file.count("/")
    assert lines_to_change(tmp_path, {file: f"{line}\n"}) == [
        f"{file}:1: in place of 'scale_it._C', write: from {dots}_ops import ops"
    ]


@pytest.mark.parametrize(
    ("file", "line"),
    [
        pytest.param("scale_it/sub/a.py", "from . import _C", id="of another package"),
        pytest.param("scale_it/sub/a.py", "from ._C import scale", id="a module of another package"),
        pytest.param("scale_it/a.py", "from .sub import _C", id="a package below"),
        pytest.param("scale_it/a.py", "from .... import _C", id="more dots than packages"),
        pytest.param("scale_it/a.py", "from . import x # _C", id="a comment"),
        pytest.param("scale_it/a.py", "from . import _Counter, x_C", id="a longer name"),
        pytest.param("scale_it/a.py", "from ._Cuda import x", id="a longer module"),
    ],
)
def test_a_relative_import_of_something_else_is_not(tmp_path, file, line):
    assert lines_to_change(tmp_path, {file: f"{line}\n"}) == []
