"""The lines of a project that import its extension, each said once with what to write in its place."""

import pytest

from tests.port.projects import SIMPLE, ported


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        pytest.param("scale_it/a.py", "from . import _C", True, id="beside"),
        pytest.param("scale_it/a.py", "    from . import x, _C as C", True, id="with others, by another name"),
        pytest.param("scale_it/a.py", "from . import (\n    x,\n    _C,\n)", True, id="on several lines"),
        pytest.param("scale_it/a.py", "from ._C import scale", True, id="what is in it"),
        pytest.param("scale_it/sub/a.py", "from .. import _C", True, id="above"),
        pytest.param("scale_it/sub/a.py", "from .._C import scale", True, id="what is in it, above"),
        pytest.param("scale_it/sub/a.py", "from . import _C", False, id="of another package"),
        pytest.param("scale_it/sub/a.py", "from ._C import scale", False, id="a module of another package"),
        pytest.param("scale_it/a.py", "from .sub import _C", False, id="a package below"),
        pytest.param("scale_it/a.py", "from .... import _C", False, id="more dots than packages"),
        pytest.param("scale_it/a.py", "from . import x # _C", False, id="a comment"),
        pytest.param("scale_it/a.py", "from . import _Counter, x_C", False, id="a longer name"),
        pytest.param("scale_it/a.py", "from ._Cuda import x", False, id="a longer module"),
    ],
)
def test_a_relative_import_is_named_where_it_is_of_the_extension(tmp_path, file, line, said):
    text = SIMPLE.replace('packages=["scale_it"]', 'packages=["scale_it", "scale_it.sub"]')
    found = ported(tmp_path, text, files={"scale_it/sub/__init__.py": "", file: f"{line}\n"})
    dots = "." * file.count("/")
    expected = f"{file}:1: in place of 'scale_it._C', write: from {dots}_ops import ops"
    assert [each for each in found.remaining if "in place of" in each] == [expected] * said
