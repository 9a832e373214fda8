"""A project of several libraries: one more target, module and id for each extension."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder import toml
from builder.config import Backend
from builder.errors import ConfigError
from builder.render import quoting, render
from tests.render.small import kernel

EXTENSION = """
[extension.moe]
src = ["moe.cpp"]
[kernel.two]
backend = "{backend}"
depends = []
src = ["two.cpp"]
extension = "moe"
"""
CUDA = "[kernel.three]\nbackend = 'cuda'\ndepends = []\nsrc = ['one.cpp']\n"
FILES = {"moe.cpp": "", "two.cpp": ""}


def project(tmp_path, *, backend="cpu", extension=EXTENSION, when='torch = ">=2.12"', part="", files=None, **given):
    extra = extension.replace("{backend}", backend).replace("{when}", when).replace("{part}", part)
    found = kernel(tmp_path, backend=backend, extra=extra, files=FILES | (files or {}), **given)
    return render(found, Backend(backend), unique_id="1")


@pytest.mark.parametrize("backend", ["cpu", "cuda", "rocm", "xpu", "metal"])
def test_an_extension_is_a_target_of_its_own_on_every_backend(tmp_path, backend):
    text = project(tmp_path, backend=backend)["CMakeLists.txt"]
    main, _, more = text.partition(f"kernel_torch_extension(\n  _tiny_moe_{backend}\n")
    assert f"kernel_torch_extension(\n  _tiny_{backend}\n  OPS _tiny_{backend}_1\n" in main
    assert more.startswith(f"  OPS _tiny_moe_{backend}_1\n  MODULE tiny\n  EXTENSION moe\n")
    assert f"kernel_{backend}_component(\n  _tiny_moe_{backend}\n  NAME two\n" in more
    assert "NAME two" not in main
    assert f"kernel_extensions_join(\n  _tiny_{backend}\n  _tiny_moe_{backend}\n)\n" in more


def test_users_reach_an_extension_as_they_reach_the_main_library(tmp_path):
    found = project(tmp_path)
    main, more = (found[f"torch-ext/tiny/{name}.py"] for name in ("_ops", "_ops_moe"))
    assert more == main.replace("_tiny_cpu_1", "_tiny_moe_cpu_1")
    compile(more, "_ops_moe.py", "exec")
    assert json.loads(found["torch-ext/tiny/metadata.json"])["extensions"] == {"moe": "_tiny_moe_cpu_1"}


def test_a_backend_without_a_component_of_it_has_no_extension(tmp_path):
    found = project(tmp_path, extension=EXTENSION.replace("{backend}", "cuda") + CUDA)
    assert "moe" not in found["CMakeLists.txt"]
    assert "torch-ext/tiny/_ops_moe.py" not in found.files
    assert "moe.cpp" not in found.files
    assert "extensions" not in json.loads(found["torch-ext/tiny/metadata.json"])


def test_a_project_without_extensions_has_nothing_of_them(tmp_path):
    found = render(kernel(tmp_path), Backend.CPU)
    assert not [path for path in found.files if "extensions" in path or "_ops_" in path]
    assert "extension" not in found["CMakeLists.txt"].replace("kernel_torch_extension", "").replace(
        "torch/extension", ""
    )


def test_a_source_of_two_libraries_is_compiled_for_each(tmp_path):
    text = project(tmp_path, extension=EXTENSION.replace("two.cpp", "one.cpp"))["CMakeLists.txt"]
    assert text.count("OBJECTS_OF one\n") == text.count("OBJECTS_OF two\n") == 1
    assert "\nkernel_objects_finish(_tiny_cpu)\nkernel_objects_finish(_tiny_moe_cpu)\ninstall(" in text


def test_a_binding_of_two_libraries_is_compiled_for_each(tmp_path):
    text = project(tmp_path, extension=EXTENSION.replace("moe.cpp", "torch-ext/binding.cpp"))["CMakeLists.txt"]
    assert "  OBJECTS_OF +binding\n" in text
    assert "  OBJECTS_OF +binding.moe\n" in text


def test_libraries_are_linked_and_loaded_where_they_are_named(tmp_path):
    found = project(
        tmp_path,
        backend="cuda",
        extension=EXTENSION.replace('["moe.cpp"]', '["moe.cpp"]\nlibraries = ["nvjpeg", "dl"]'),
    )
    text = found["CMakeLists.txt"]
    assert text.count("kernel_libraries(") == 1
    assert "kernel_libraries(\n  _tiny_moe_cuda\n" in text
    assert "nvjpeg" in found["torch-ext/tiny/_ops_moe.py"]
    assert "nvjpeg" not in found["torch-ext/tiny/_ops.py"]


def test_a_module_of_pybind11_is_imported_where_it_is_defined(tmp_path):
    files = {"moe.cpp": "#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}\n"}
    found = project(tmp_path, torch='python-abi = "cpython"', files=files)
    assert "from . import _tiny_moe_cpu_1\n\nmodule = _tiny_moe_cpu_1\n" in found["torch-ext/tiny/_ops_moe.py"]
    assert "load_library" in found["torch-ext/tiny/_ops.py"]
    assert found["CMakeLists.txt"].count("kernel_python_module(") == 2


def test_headers_of_python_in_one_library_name_both_for_the_limited_api(tmp_path):
    found = project(tmp_path, files={"two.cpp": "#include <Python.h>\n"})
    assert found["CMakeLists.txt"].count("kernel_python_headers(") == 2
    for name in ("_ops", "_ops_moe"):
        assert '_cpu_1.abi3.so"' in found[f"torch-ext/tiny/{name}.py"]


def test_only_the_library_that_uses_its_name_is_compiled_with_it(tmp_path):
    used = "const char* name() { return STRING(TORCH_EXTENSION_NAME); }\n"
    text = project(tmp_path, files={"moe.cpp": used})["CMakeLists.txt"]
    assert text.count("NAME_IN\n    moe.cpp\n") == text.count("NAME_IN") == 1


def test_an_extension_whose_components_all_have_conditions_may_not_be_empty(tmp_path):
    text = project(tmp_path, extension=EXTENSION + 'when = { torch = ">=2.10" }\n')["CMakeLists.txt"]
    assert "kernel_when_any(\n  AMONG\n    two\n)\n" in text
    assert text.count("kernel_when_any(") == 1


WHEN = """
[extension.moe]
src = ["moe.cpp"]
when = { {when} }
[kernel.two]
backend = "{backend}"
depends = []
src = ["two.cpp"]
extension = "moe"
{part}
"""


@pytest.mark.parametrize("backend", ["cpu", "cuda", "metal"])
def test_an_extension_with_a_condition_stands_in_it_as_a_whole(tmp_path, backend):
    found = project(tmp_path, extension=WHEN, backend=backend)
    text = found["CMakeLists.txt"]
    opening = "kernel_when_holds(\n  holds\n  EXTENSION moe\n  TORCH_IS\n    >=2.12\n)\nif(holds)\n"
    main, _, rest = text.partition(opening)
    inside = rest.partition("\nendif()\n")[0]
    assert f"_tiny_moe_{backend}" not in main
    assert f"kernel_torch_extension(\n  _tiny_moe_{backend}\n" in inside
    assert "NAME two\n" in inside
    assert "  EXTENSIONS\n    moe _tiny_moe_" in rest
    assert "install(DIRECTORY" not in text
    assert '"extensions": @KERNEL_EXTENSIONS@' in found["metadata.json.in"]
    assert "torch-ext/tiny/metadata.json" not in found.files


def test_the_condition_of_an_extension_is_in_the_project_and_so_in_the_build_key(tmp_path):
    found = {
        when: project(tmp_path / when[-3:-1], extension=WHEN, when=when).digest
        for when in ('torch = ">=2.12"', 'torch = ">=2.13"')
    }
    assert len(set(found.values())) == 2


def test_an_architecture_of_an_extension_is_asked_of_all_its_components(tmp_path):
    more = '[kernel.more]\nbackend = "cuda"\ndepends = []\nsrc = ["one.cpp"]\nextension = "moe"\n'
    text = project(
        tmp_path,
        extension=WHEN,
        when='arch = ["9.0a", "10.0a"]',
        part=f'cuda-capabilities = ["8.0", "9.0a"]\n{more}cuda-capabilities = ["10.0a"]',
        backend="cuda",
    )["CMakeLists.txt"]
    assert "  EXTENSION moe\n  CAPABILITIES\n    CUDA>=12.8 9.0a 10.0a\n    CUDA>=11.8 9.0a\n)\n" in text


def test_a_component_of_a_conditional_extension_has_its_own_condition_within(tmp_path):
    text = project(tmp_path, extension=WHEN, part='when = { system = "x86_64-linux" }')["CMakeLists.txt"]
    assert text.index("EXTENSION moe") < text.index("NAME two\n  SYSTEM_IS") < text.index("if(TARGET _tiny_moe_cpu)")
    assert "if(TARGET _tiny_moe_cpu)\nkernel_when_any(\n  AMONG\n    two\n)\nendif()\n" in text


@given(data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_values_of_an_extension_reach_cmake_as_they_are_or_not_at_all(tmp_path, data):
    value = data.draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
    extension = EXTENSION.replace('["moe.cpp"]', f'["moe.cpp"]\ndefines = {{ X = {toml.spelled(value)} }}')
    try:
        text = project(tmp_path, extension=extension)["CMakeLists.txt"]
    except ConfigError as error:
        assert {problem.code for problem in error.problems} <= {"B060", "B002", "B038"}  # noqa: PT017
    else:
        plain = project(tmp_path, extension=extension.replace(toml.spelled(value), "'V'"))["CMakeLists.txt"]
        assert text == plain.replace("    -DX=V\n", f"    {quoting.cmake(f'-DX={value}')}\n")
