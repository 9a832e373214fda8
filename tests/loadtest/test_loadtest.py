"""The load test beyond what builds of real kernels show of it: each outcome, and what it is told from."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builder import kernel, loadtest
from builder.config import LoadTestRule
from builder.loadtest import failures, packages
from builder.loadtest.load_outcome import SKIPPED, LoadState, LoadTest
from builder.loadtest.packages import LoadTestPackages
from builder.make import wheel_record as record
from builder.make.build_report import BuildReport
from builder.pins import PinnedWheel
from tests.given.cells import cell_in
from tests.given.environments import made_up_torch
from tests.given.files import write
from tests.paths import TESTS

DATA = TESTS / "data/kernels"
CONFIG = """
[general]
name = "package"
version = 1
edition = 5
license = "MIT"
backends = ["cpu", "cuda"]
{general}

[torch-noarch]
"""


TINY_CELL = cell_in(DATA / "tiny", system="x86_64-linux", sets=("release",))
"""A cell whose library is compiled."""


def setup(tmp_path, init, *, general="", tables="", backend="cuda", cell=None, **given):
    """Write a pure-Python kernel, and return what a load test has; its cell may be that of a compiled one."""
    root = write(
        tmp_path / "kernel",
        {"build.toml": CONFIG.format(general=general) + tables, "torch-ext/package/__init__.py": init},
    )
    cell = cell or cell_in(root, system="x86_64-linux", sets=("release",), backend=backend)
    usual = {"package": root / "torch-ext/package", "cell": cell, "python": Path(sys.executable)}
    return loadtest.Setup(**usual | given)


@pytest.fixture
def judge(tmp_path):
    """Return what becomes of a pure-Python package."""
    return lambda init, **given: loadtest.load(setup(tmp_path, init, **given), ops="ops")


@pytest.mark.parametrize("kept", [True, False])
def test_bytecode_is_kept_only_where_it_may_be(judge, tmp_path, kept):
    assert judge("", bytecode=kept).outcome is LoadState.LOADED
    assert (tmp_path / "kernel/torch-ext/package/__pycache__").exists() == kept


def test_a_module_that_nobody_declares_is_named_with_the_line_that_declares_it(judge):
    found = judge("import einops\n")
    assert found.outcome is LoadState.NOT_IMPORTABLE
    assert found.module == "einops"
    assert "the module 'einops' is not declared" in found.reason
    assert 'python-depends = ["einops"] to [general]' in found.help
    with pytest.raises(loadtest.LoadError, match="einops") as caught:
        found.require(LoadTestRule.REQUIRE)
    assert "package/__init__.py" in caught.value.message
    assert "importlib" not in caught.value.message


def test_a_module_of_one_backend_is_declared_in_its_table(judge):
    assert 'python-depends = ["nvidia-cutlass-dsl"] to [general.cuda]' in judge("import cutlass\n").help


def test_what_no_line_can_declare_is_said(judge):
    assert (
        "name the package that has 'no_such_module' in 'requires' of [wheel]"
        in judge("import no_such_module.part\n").help
    )


def test_triton_is_nothing_to_declare_where_torch_brings_none(judge):
    found = judge("import triton\n", backend="cpu")
    assert found.outcome is LoadState.NOT_IMPORTABLE
    assert "torch brings 'triton' for cuda" in found.help


def test_what_is_declared_and_not_at_hand_refuses_nothing(judge):
    absent = {"nki": "'nki' is not pinned for Python 3.11 on x86_64-linux"}
    found = judge("import nki\n", packages=LoadTestPackages(absent=absent))
    assert found.outcome is LoadState.NOT_TESTED
    assert "is not pinned" in found.reason
    assert not found.by_choice
    found.require(LoadTestRule.REQUIRE)


DEVICE = """
import torch
def ask():
    {code}
ask()
"""


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("torch.cuda.get_device_capability()", id="capability"),
        pytest.param("torch.zeros(1, device='cuda')", id="tensor"),
        pytest.param("torch.xpu.get_device_properties(0)", id="xpu"),
    ],
)
def test_a_package_that_asks_for_a_device_is_imported_as_far_as_it_can_be(judge, code):
    found = judge(DEVICE.format(code=code))
    assert found.outcome is LoadState.IMPORTED, found
    assert "a machine without a GPU" in found.words
    found.require(LoadTestRule.REQUIRE)


def test_an_import_error_that_wraps_a_missing_device_is_one_of_it(judge):
    wrapped = (
        "try:\n        torch.cuda.current_device()\n    except AssertionError:\n        raise ImportError('no GPU')"
    )
    assert judge(DEVICE.format(code=wrapped)).outcome is LoadState.IMPORTED


def test_an_error_with_the_words_of_another_is_not_taken_for_it(judge):
    found = judge("raise RuntimeError('Found no NVIDIA driver on your system')\n")
    assert found.outcome is LoadState.BROKEN


def test_devices_are_hidden_from_a_kernel(judge):
    code = (
        "import os\nassert os.environ['CUDA_VISIBLE_DEVICES'] == ''\nassert os.environ['HIP_VISIBLE_DEVICES'] == '-1'\n"
    )
    assert judge(code).outcome is LoadState.LOADED


@pytest.mark.parametrize(
    ("init", "said"),
    [
        pytest.param("1 / 0\n", "ZeroDivisionError: division by zero", id="error"),
        pytest.param("from . import nothing_there\n", "cannot import name 'nothing_there'", id="own module"),
        pytest.param("import package.part\n", "No module named 'package.part'", id="own submodule"),
        pytest.param("import json.nothing\n", "No module named 'json.nothing'", id="standard library"),
        pytest.param("raise SystemExit(3)\n", "SystemExit: 3", id="exit"),
        pytest.param("import os\nos._exit(3)\n", "the process ended with exit code 3", id="death"),
        pytest.param("import os\nos.kill(os.getpid(), 9)\n", "the process ended with signal 9", id="signal"),
    ],
)
def test_what_is_broken_is_told_in_the_words_of_python(judge, init, said):
    found = judge(init)
    assert found.outcome is LoadState.BROKEN
    assert said in found.reason
    with pytest.raises(loadtest.LoadError):
        found.require(LoadTestRule.REQUIRE)


@pytest.mark.parametrize("rule", [LoadTestRule.TRY, LoadTestRule.SKIP])
def test_only_a_required_test_refuses(judge, rule):
    found = judge("import no_such_module\n")
    found.require(rule)


def test_an_earlier_test_answers_only_what_is_asked():
    loaded = LoadTest(outcome=LoadState.LOADED)
    broken = LoadTest(outcome=LoadState.BROKEN)
    away = LoadTest(outcome=LoadState.NOT_TESTED)
    assert [each.answers(LoadTestRule.REQUIRE) for each in (loaded, broken, away, SKIPPED)] == [
        True,
        False,
        True,
        False,
    ]
    assert [each.answers(LoadTestRule.TRY) for each in (loaded, broken, away, SKIPPED)] == [True, True, True, False]
    assert all(each.answers(LoadTestRule.SKIP) for each in (loaded, broken, away, SKIPPED))


def test_a_missing_module_is_seen_before_the_library_is_there(tmp_path):
    has = setup(tmp_path, "from ._ops import ops\nimport no_such_module\n", cell=TINY_CELL)
    assert loadtest.check_imports(has, ops="ops").module == "no_such_module"


@pytest.mark.parametrize(
    "init",
    [
        pytest.param("from ._ops import ops\n", id="nothing wrong"),
        pytest.param("from . import _ops\n_ops.ops.twice(1).shape[0]\n1 / 0\n", id="another error"),
        pytest.param("from ._ops import ops\nif ops.has(): import no_such_module\n", id="what the stand-in said"),
        pytest.param("import torch\ntorch.cuda.current_device()\n", id="device"),
        pytest.param("try:\n    import no_such_module\nexcept ImportError:\n    pass\n", id="handled"),
        pytest.param("def call():\n    import no_such_module\n", id="lazy"),
        pytest.param("from . import missing_part\n", id="own module"),
    ],
)
def test_nothing_else_is_refused_before_the_library_is_there(tmp_path, init):
    assert loadtest.check_imports(setup(tmp_path, init, cell=TINY_CELL), ops="ops") is None


def test_imports_are_found_without_running_a_file():
    source = b"import a.b, c\nfrom d.e import f\nfrom . import g\ndef h():\n    import i\n"
    assert packages.imported_modules(source) == {"a", "c", "d", "i"}
    assert packages.imported_modules(b"def (:\n") == frozenset()


@pytest.mark.parametrize(
    ("symbol", "library"),
    [
        ("cuTensorMapEncodeTiled", "libcuda.so.1"),
        ("cudaMalloc", "libcudart.so"),
        ("cublasLtMatmul", "libcublasLt.so"),
        ("cublas_v2_thing", "libcublas.so"),
        ("cusparseLtInit", "libcusparseLt.so"),
        ("nvrtcCompileProgram", "libnvrtc.so"),
        ("hipblasLtCreate", "libhipblaslt.so"),
        ("cumulate", None),
        ("_Z5twicev", None),
    ],
)
def test_the_library_of_a_symbol_is_known_by_its_prefix(symbol, library):
    assert failures.owner(symbol) == library


def test_a_function_that_nothing_defines_is_named_as_the_sources_write_it():
    found, remedy = failures.explain("a.so: undefined symbol: _Z5twiceRKN2at6TensorE")
    name = "twice(at::Tensor const&)" if shutil.which("c++filt") else "_Z5twiceRKN2at6TensorE"
    assert found == f"undefined symbol '{name}': nothing defines it"
    assert "'src'" in remedy


@pytest.mark.parametrize("symbol", ["torch_dtype_float4_e2m1fn_x2", "_ZN3c105ErrorC1EPKc", "_ZTIN3c105ErrorE"])
def test_what_a_torch_lacks_is_not_asked_of_the_sources(symbol):
    found, remedy = failures.explain(f"a.so: undefined symbol: {symbol}")
    assert "the torch that it was loaded with does not have it" in found
    assert "torch.stable-abi" in remedy


@pytest.mark.cmake
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc: apt-get install gcc")
@pytest.mark.parametrize("name", ["_package_cpu_1.so", "_package_cpu_1.abi3.so"])
def test_the_words_of_the_loader_reach_the_user_past_a_package_that_hides_them(tmp_path, name):
    hides = "try:\n    import package._package_cpu_1\nexcept ImportError:\n    pass\n"
    has = setup(tmp_path, hides, cell=TINY_CELL, **made_up_torch(tmp_path))
    source = tmp_path / "a.c"
    source.write_text("void cuTensorMapEncodeTiled(void);\nvoid f(void) { cuTensorMapEncodeTiled(); }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", has.package / name, source], check=True)
    found = loadtest.load(has, ops="_package_cpu_1")
    assert found.outcome is LoadState.BROKEN
    assert "undefined symbol 'cuTensorMapEncodeTiled': it is of 'libcuda.so.1', the driver" in found.reason
    assert 'cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", …)' in found.help


def test_a_library_that_a_driver_brings_is_a_missing_device():
    said = "libcuda.so.1: cannot open shared object file: No such file or directory"
    assert failures.lacks_a_driver(said)
    assert not failures.lacks_a_driver(said.replace("libcuda.so.1", "libmine.so"))


def test_what_the_load_test_has_is_declared_or_brought(tmp_path):
    has = setup(tmp_path, "import triton\n", general='python-depends = ["einops"]\n')
    assert packages.wanted(kernel.load(tmp_path / "kernel"), has.cell) == ("einops", "triton")


def test_a_module_of_a_required_package_that_is_not_here_refuses_nothing(tmp_path):
    given = setup(tmp_path, "import thing\n", tables='[wheel]\nrequires = ["Some.Thing[x]>=1", "einops"]\n')
    here = PinnedWheel(file="", name="einops", version="0.8.1", sha256="")
    has = packages.found(kernel.load(tmp_path / "kernel"), given.cell, wheels=(here,), why="is not pinned")
    assert has.unmet == {"some-thing": "'Some.Thing[x]>=1' is not pinned"}
    assert has.names == ("einops 0.8.1",)
    found = loadtest.load(replace(given, packages=has), ops="ops")
    assert found.outcome is LoadState.NOT_TESTED
    assert "nor is a package that may have it: 'Some.Thing[x]>=1' is not pinned" in found.reason


def test_an_exception_of_another_package_names_it_with_its_version(judge, tmp_path):
    folder = tmp_path / "others"
    files = {"outer/__init__.py": "import inner\n", "inner.py": "raise ValueError('registered twice')\n"}
    for name, version in {"outer": "0.1.8", "Inner-Dist": "0.2"}.items():
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        own = [file for file in files if file.startswith(name[:5].lower())]
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in own))
    has = LoadTestPackages(folders=(write(folder, files),))
    found = judge("import outer\n", packages=has)
    assert found.outcome is LoadState.BROKEN
    assert "raised in 'outer 0.1.8', 'Inner-Dist 0.2': bound the one that does not fit" in found.help
    own = judge("raise ValueError\n", packages=has)
    assert own.help.startswith("correct what the last line names")


def test_triton_is_left_out_where_nobody_imports_it(tmp_path):
    has = setup(tmp_path, "import torch\n")
    assert packages.wanted(kernel.load(tmp_path / "kernel"), has.cell) == ()


def test_a_kernel_that_another_depends_on_is_noted_when_it_is_not_at_hand(tmp_path):
    depends = 'kernel-depends = [{ repo-id = "us/other-kernel", version = 1 }]\n'
    given = setup(tmp_path, "import other_kernel\n", general=depends)
    has = packages.found(kernel.load(tmp_path / "kernel"), given.cell, wheels=(), why="is not pinned")
    found = loadtest.load(replace(given, packages=has), ops="ops")
    assert found.outcome is LoadState.NOT_TESTED
    assert "'us/other-kernel' of kernel-depends is not at hand" in found.reason
    assert set(has.absent) == {"other_kernel", "kernels"}


def test_a_record_is_read_back_for_its_own_wheel_alone(tmp_path):
    wheel = tmp_path / "a-1.0.0-py3-none-any.whl"
    known = LoadTest(outcome=LoadState.IMPORTED, ops={"a::b": ("CPU",)}, reason="why", packages=("triton 3.7.1",))
    record.write(wheel, sha256="ab", variant="torch-cuda", report=BuildReport(load_test=known))
    assert record.read(wheel, sha256="ab") == known
    assert record.read(wheel, sha256="cd") is None
    record.path_of(wheel).write_text("{")
    assert record.read(wheel, sha256="ab") is None


def test_a_report_of_before_there_were_outcomes_is_understood():
    assert LoadTest.from_report({"ops": {"a::b": ["CPU"]}}).outcome is LoadState.LOADED
    assert LoadTest.from_report({"ops": None}) == SKIPPED


def test_an_outcome_as_json_is_the_same_on_every_machine(judge):
    text = json.dumps(judge("import no_such_module\n").to_json())
    assert str(Path.cwd()) not in text
    assert "/" not in text.replace("'--load-test", "")


OPS = """
import torch
library = torch.library.Library("_package_1", "DEF")
library.define("scale(Tensor x) -> Tensor")
library.impl("scale", lambda x: x, "CompositeExplicitAutograd")
ops = torch.ops._package_1
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("call", "named", "refused"),
    [
        pytest.param("ops.scal(x)", {"scale"}, True, id="nothing registers it"),
        pytest.param("ops.scal.default(x)", {"scale"}, True, id="an overload"),
        pytest.param("ops.scale(x)", set(), False, id="the dispatcher has it"),
        pytest.param("ops.scal(x)", {"scal"}, False, id="a source of another backend names it"),
        pytest.param("ops.scal(x)", None, False, id="the sources are not known"),
    ],
)
def test_a_call_of_an_op_that_the_dispatcher_does_not_have_is_refused_with_its_line(tmp_path, call, named, refused):
    given = setup(tmp_path, f"from ._ops import ops\ndef f(x):\n    return {call}\n", backend="cpu")
    (given.package / "_ops.py").write_text(OPS)
    found = loadtest.load(given, ops="_package_1", named=None if named is None else frozenset(named))
    assert found.outcome is (LoadState.BROKEN if refused else LoadState.LOADED), found
    if refused:
        assert found.reason == "package/__init__.py:3 calls the op 'scal', which nothing registers"
        assert found.help == "did you mean 'scale'?"
