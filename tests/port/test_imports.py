"""The Python of a project that imports its extension: a module of the name of before, or lines to change by hand."""

import sys

import pytest

from tests.given import files as given
from tests.given import processes
from tests.port.projects import SIMPLE, ported

BELOW = SIMPLE.replace('packages=["scale_it"]', 'packages=["scale_it", "scale_it.sub"]')
MODULE = {"csrc/binding.cpp": "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"}
GENERATED = "import types\n\nmodule = types.ModuleType('unique')\nmodule.scale = abs\n"
IMPORTS = "from . import _C\nfrom scale_it._C import scale\nimport scale_it._C as same\n"
TOP = BELOW.replace('"scale_it._C"', '"scale_cuda"')
LINES = 'import scale_cuda\nfrom scale_cuda import scale\nfound = importlib.import_module("scale_cuda")\n'


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
def test_an_import_of_the_extension_gets_its_module_unless_the_project_has_one(tmp_path, file, line, said):
    files = {"scale_it/sub/__init__.py": "", file: f"{line}\n"}
    assert ("scale_it/_C.py" in ported(tmp_path, BELOW, files=files).files) is said
    found = ported(tmp_path, BELOW, files={**files, "scale_it/_C.py": "own = 1\n"})
    dots = "." * file.count("/")
    expected = f"{file}:1: in place of 'scale_it._C', write: from {dots}_ops import ops"
    assert [each for each in found.remaining if "in place of" in each] == [expected] * said
    assert "scale_it/_C.py" not in found.files


def _said(folder, code):
    return processes.output(sys.executable, "-c", code, cwd=folder)


def test_every_way_to_import_an_extension_gives_the_generated_module(tmp_path):
    found = ported(tmp_path, SIMPLE, files={**MODULE, "scale_it/__init__.py": IMPORTS})
    assert not [line for line in found.remaining if line.startswith("scale_it")]
    given.write(tmp_path, {**found.files, "scale_it/_ops.py": GENERATED})
    code = "import sys, scale_it as s; print(s._C is s.same is s._ops.module is sys.modules['scale_it._C'], s.scale)"
    assert _said(tmp_path, code) == "True <built-in function abs>\n"


def test_a_port_of_what_was_ported_writes_the_same_files(tmp_path):
    files = {**MODULE, "scale_it/__init__.py": IMPORTS}
    first = ported(tmp_path, SIMPLE, files=files)
    given.write(tmp_path, first.files)
    assert ported(tmp_path, SIMPLE, files=files) == first


def test_three_imports_of_an_extension_beside_the_package_are_changed_by_hand(tmp_path):
    found = ported(tmp_path, TOP, files={**MODULE, "scale_it/a.py": LINES})
    assert [line.partition(": ")[0] for line in found.remaining if "scale_it/" in line] == [
        f"scale_it/a.py:{number}" for number in (1, 2, 3)
    ]
    assert list(found.files) == ["build.toml"]


def test_more_imports_of_extensions_beside_the_package_need_one_line(tmp_path):
    files = {"scale_it/__init__.py": '"""Scale."""\nfrom __future__ import annotations\nimport importlib\n'}
    files |= {"scale_it/sub/__init__.py": f"import importlib\n{LINES}", "scale_it/sub/a.py": LINES}
    found = ported(tmp_path, TOP, files=MODULE | files)
    said = "write: from . import _extensions, which gives the extensions their names in 6 other lines"
    assert [line for line in found.remaining if "scale_it/" in line] == [f"scale_it/__init__.py:3: {said}"]
    edited = {"scale_it/__init__.py": "from . import _extensions\n", "scale_it/_ops.py": GENERATED}
    given.write(tmp_path, {**found.files, **edited})
    code = "import sys, scale_it; print('scale_it._ops' in sys.modules); import scale_it.sub as s; "
    code += "print(s.scale_cuda is s.found is scale_it._ops.module, s.scale)"
    assert _said(tmp_path, code) == "False\nTrue <built-in function abs>\n"


@pytest.mark.parametrize(
    "name", ["scale_it._ops", "scale_it.no-name", "scale_it.class", "scale_it.gone._C", "other._C"]
)
def test_what_can_be_no_module_of_the_package_is_changed_by_hand(tmp_path, name):
    files = {**MODULE, "scale_it/a.py": f'find("{name}")\n'}
    found = ported(tmp_path, SIMPLE.replace("scale_it._C", name), files=files)
    assert f"scale_it/a.py:1: no module of the wheel is named '{name}': see what becomes of this" in found.remaining
    assert list(found.files) == ["build.toml"]


def test_ops_that_are_called_by_the_name_of_the_module_have_that_of_the_build(tmp_path):
    lines = "from . import _C\ntorch.ops._C.scale(x)\n# torch.ops._C\ntorch.ops._Counter.x()\n"
    found = ported(tmp_path, SIMPLE, files={"scale_it/a.py": lines})
    said = "scale_it/a.py:2: in place of 'torch.ops._C', write ops, of: from ._ops import ops"
    assert [line for line in found.remaining if line.startswith("scale_it/")] == [said]
    assert "from ._ops import ops\n" in found.files["scale_it/_C.py"]
