"""`libraries` in a rendered project: CMake's targets, what the linker is told, and what a package loads first."""

import ast
from types import SimpleNamespace

import pytest

from builder import toml
from builder.config import Backend
from builder.errors import ConfigError
from builder.kernel import load
from builder.render import render
from tests.render.small import kernel, rendered

CALL = "kernel_libraries(\n  _tiny_{backend}\n{arguments}\n)\n"


@pytest.mark.parametrize(
    ("backend", "names", "arguments"),
    [
        ("cpu", '"dl", "m", "rt"', "  LINK_NAMES\n    dl\n    m\n  LINK_EXCEPT_MACOS\n    rt"),
        (
            "cuda",
            '"cublas", "cuda_driver", "dl"',
            "  TARGETS\n    CUDA::cublas\n    CUDA::cuda_driver\n  LINK_NAMES\n    dl",
        ),
        ("rocm", '"hipblas"', "  FIND_PACKAGES\n    hipblas\n  TARGETS\n    roc::hipblas"),
        ("xpu", '"dl", "dl"', "  LINK_NAMES\n    dl"),
        ("metal", '"m"', "  LINK_NAMES\n    m"),
    ],
)
def test_a_component_is_linked_to_its_libraries(tmp_path, backend, names, arguments):
    files = rendered(tmp_path, backend=backend, component=f"libraries = [{names}]")
    assert files["CMakeLists.txt"].count(CALL.format(backend=backend, arguments=arguments)) == 1
    assert "include(cmake/libraries.cmake)\n" in files["CMakeLists.txt"]
    assert "cmake/cuda/driver.cmake" in files.files


def test_a_binding_is_linked_on_each_backend_to_what_that_has(tmp_path):
    kernel(tmp_path, torch='libraries = ["cublas", "dl"]')
    config = tmp_path / "build.toml"
    config.write_text(config.read_text(encoding="utf-8").replace('["cpu"]', '["cpu", "cuda"]'), encoding="utf-8")
    lists = render(load(tmp_path), Backend.CPU)["CMakeLists.txt"]
    assert CALL.format(backend="cpu", arguments="  LINK_NAMES\n    dl") in lists
    assert "CUDA::" not in lists
    everywhere = rendered(tmp_path / "cuda", backend="cuda", torch='libraries = ["cublas", "dl"]')["CMakeLists.txt"]
    arguments = "  TARGETS\n    CUDA::cublas\n  LINK_NAMES\n    dl"
    assert CALL.format(backend="cuda", arguments=arguments) in everywhere


def test_a_library_that_the_backend_lacks_is_refused_where_it_is_named(tmp_path):
    with pytest.raises(ConfigError) as caught:
        rendered(tmp_path, backend="cpu", component='libraries = ["dl", "cublas"]')
    (problem,) = caught.value.problems
    assert (problem.code, problem.key) == ("B063", ("kernel", "one", "libraries", 1))
    assert problem.message == "there is no library 'cublas' for 'cpu'"
    assert problem.help == "cpu has: dl, m, pthread, rt"


def test_a_package_loads_what_torch_does_not(tmp_path):
    text = rendered(tmp_path, backend="cuda", component='libraries = ["nvrtc", "cublas"]')["torch-ext/tiny/_ops.py"]
    assert '    "libnvrtc.so",\n' in text
    assert "libcublas" not in text
    assert text.index("ctypes.CDLL") < text.index("load_library")
    ast.parse(text)


@pytest.mark.parametrize("framework", ["torch", "tvm-ffi"])
def test_a_kernel_without_such_libraries_loads_nothing_first(tmp_path, framework):
    package = "tvm-ffi-ext" if framework == "tvm-ffi" else "torch-ext"
    plain = rendered(tmp_path / "a", backend="cuda", framework=framework)
    with_ = rendered(tmp_path / "b", backend="cuda", component='libraries = ["cuda_driver"]', framework=framework)
    assert "ctypes" not in plain[f"{package}/tiny/_ops.py"]
    assert plain[f"{package}/tiny/_ops.py"].count("\n") == with_[f"{package}/tiny/_ops.py"].count("\n")


def test_a_project_without_libraries_has_no_module_for_them(tmp_path):
    files = rendered(tmp_path, backend="cuda")
    assert "libraries.cmake" not in files["CMakeLists.txt"]
    assert "cmake/libraries.cmake" not in files.files


@pytest.mark.parametrize(
    ("torch", "cuda", "expected"),
    [
        ("", "'12.6'", ["torch==2.13.*", "nvidia-nvjpeg-cu12"]),
        ("", "'13.0'", ["torch==2.13.*", "nvidia-nvjpeg>=13,<14"]),
        ("", "None", ["torch==2.13.*"]),
        ('stable-abi = "2.10"', "'13.0'", ["nvidia-nvjpeg>=13,<14"]),
    ],
)
def test_a_wheel_that_pip_makes_asks_for_the_libraries_of_the_cuda_of_its_torch(
    tmp_path, monkeypatch, torch, cuda, expected
):
    files = rendered(tmp_path / "kernel", backend="cuda", component='libraries = ["nvjpeg", "cublas"]', torch=torch)
    installed = tmp_path / "site/torch"
    installed.mkdir(parents=True)
    (installed / "__init__.py").touch()
    (installed / "version.py").write_text(f"__version__ = '2.13.0'\ncuda: Optional[str] = {cuda}\n", encoding="utf-8")
    own = {}
    exec(compile(files["requirement.py"], "requirement.py", "exec"), own)
    (settings,) = toml.loads(files["pyproject.toml"])["tool"]["dynamic-metadata"]
    monkeypatch.setitem(own, "version", lambda _: "2.13.0")
    monkeypatch.setitem(own, "find_spec", lambda _: SimpleNamespace(origin=str(installed / "__init__.py")))
    assert own["dynamic_metadata"](settings, {}) == {"dependencies": expected}
    assert toml.loads(files["pyproject.toml"])["project"]["dynamic"] == ["dependencies"]


@pytest.mark.parametrize("names", ['"cublas", "dl"', '"cuda_driver"'])
def test_libraries_that_torch_brings_change_nothing_of_the_requirements(tmp_path, names):
    plain = rendered(tmp_path / "plain", backend="cuda")
    found = rendered(tmp_path / "linked", backend="cuda", component=f"libraries = [{names}]")
    assert found["requirement.py"] == plain["requirement.py"]
    assert found["pyproject.toml"] == plain["pyproject.toml"]
