"""The table [ctypes]: a plain shared library, without a framework."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import toml
from builder.config import Backend, Framework, parse
from builder.config.source_tables import ExportGlob, exported
from builder.config.update import rewrite
from builder.config.values import InvalidValueError
from builder.kernel import Kernel
from builder.lint import portability
from tests.config.dump import dump
from tests.config.texts import GENERAL, five, problems_of, source

ONE = GENERAL.replace('"cpu", "cuda"', '"cpu"')
PARTS = """
[kernel.host]
backend = "cpu"
depends = []
src = ["a.cpp"]
"""
TABLE = """[ctypes]
exports = ["cquantize_*", "get_context"]
backend-exports = { cuda = ["get_context", "cget_*"] }
src = ["csrc/interface.cpp"]
exclude = ["csrc/x.cpp"]
include = ["csrc"]
pyext = ["py"]
cxx-flags = ["-O2"]
defines = { BUILD_CUDA = true, N = 4 }
file-flags = { "csrc/*.cpp" = ["-O1"] }
libraries = ["cublas", "dl"]
"""


def test_the_table_is_read_written_and_kept_by_update():
    config = parse(source(ONE + TABLE + PARTS))
    assert config.framework is Framework.CTYPES
    assert config.ctypes.exports == ("cquantize_*", "get_context")
    assert config.ctypes.exports_of(Backend.CPU) == ("cquantize_*", "get_context")
    assert config.ctypes.exports_of(Backend.CUDA) == ("cquantize_*", "get_context", "cget_*")
    assert config.ctypes.defines == {"BUILD_CUDA": True, "N": 4}
    assert config.pyext == ("py",)
    assert parse(source(dump(config))) == config
    assert rewrite(source(ONE + TABLE + PARTS)) == ONE + TABLE + PARTS


def test_a_cuda_library_is_linked_to_the_runtime_that_no_framework_brings():
    config = parse(source(GENERAL + TABLE + PARTS + PARTS.replace("host", "device").replace('"cpu"', '"cuda"')))
    assert config.libraries(Backend.CUDA) == ("cudart", "cublas", "dl")
    assert config.libraries(Backend.CPU) == ("dl",)


@pytest.mark.parametrize(
    ("line", "code", "key"),
    [
        pytest.param("", "B011", (), id="no exports"),
        pytest.param('exports = "f"', "B012", ("exports",), id="a text"),
        pytest.param("exports = [1]", "B012", ("exports", 0), id="a number"),
        pytest.param('exports = ["*"]', "B045", ("exports", 0), id="everything"),
        pytest.param('exports = ["f; local: g"]', "B045", ("exports", 0), id="a second line of a version script"),
        pytest.param('exports = ["f\\n}"]', "B045", ("exports", 0), id="a newline"),
        pytest.param('exports = ["f", "${HOME}"]', "B045", ("exports", 1), id="a variable of CMake"),
        pytest.param('exports = ["f[a]"]', "B045", ("exports", 0), id="a class of characters"),
        pytest.param('exports = [""]', "B045", ("exports", 0), id="nothing"),
        pytest.param(
            'exports = ["f"]\nbackend-exports = { cuda = ["*"] }',
            "B045",
            ("backend-exports", "cuda", 0),
            id="all of one",
        ),
        pytest.param(
            'exports = ["f"]\nbackend-exports = { gpu = ["f"] }', "B013", ("backend-exports", "gpu"), id="no backend"
        ),
        pytest.param('exports = ["f"]\nminver = "2.9"', "B010", ("minver",), id="a bound on torch"),
        pytest.param('exports = ["f"]\nsrc = ["../a.cpp"]', "B023", ("src", 0), id="a file outside"),
        pytest.param('exports = ["f"]\ndefines = { "1X" = true }', "B038", ("defines", "1X"), id="no macro"),
        pytest.param('exports = ["f"]\nlibraries = ["cublass"]', "B039", ("libraries", 0), id="no library"),
    ],
)
def test_another_value_is_refused_at_its_place(line, code, key):
    (problem,) = problems_of(f"{ONE}[ctypes]\n{line}\n{PARTS}")
    assert (problem.code, problem.key[: len(key) + 1]) == (code, ("ctypes", *key) if key else ("ctypes", "exports")[:1])


@pytest.mark.parametrize(
    ("text", "help_"),
    [("void cquantize_blockwise(float *x)", "write 'cquantize_blockwise'"), ("-f", None), ("?f", None)],
)
def test_a_declaration_of_c_is_answered_with_its_name(text, help_):
    assert ExportGlob.remedy(text) == help_


@pytest.mark.parametrize("backend", ["rocm", "xpu", "metal", "tpu", "cann", "neuron"])
def test_a_backend_whose_compiler_needs_a_framework_is_refused_where_it_is_listed(backend):
    (problem,) = problems_of(GENERAL.replace('"cpu", "cuda"', f'"cpu", "{backend}"') + TABLE + PARTS)
    assert (problem.code, problem.key) == ("B046", ("general", "backends", 1))
    assert problem.message == f"'{backend}' has no plain libraries: a kernel with [ctypes] is built for 'cpu', 'cuda'"


def test_a_backend_without_a_component_is_refused_since_no_wheel_could_be_pure_python():
    (problem,) = problems_of(GENERAL + TABLE + PARTS)
    assert (problem.code, problem.key) == ("B046", ("general", "backends", 1))
    assert problem.help == 'add a [kernel.<name>] with backend = "cuda", or remove the backend'


def test_what_needs_torch_is_refused():
    (problem,) = problems_of(ONE + TABLE + PARTS.replace("depends = []", 'depends = ["cutlass_4_5", "torch"]'))
    assert (problem.code, problem.key) == ("B046", ("kernel", "host", "depends", 1))
    hub = 'kernel-depends = [{ repo-id = "a/b", version = 1 }]\n'
    (problem,) = problems_of(ONE + hub + TABLE + PARTS)
    assert (problem.code, problem.key) == ("B046", ("general", "kernel-depends"))
    (problem,) = problems_of(f"{ONE}[general.cuda]\n{hub}{TABLE}{PARTS}")
    assert (problem.code, problem.key) == ("B046", ("general", "cuda", "kernel-depends"))


def test_the_python_of_a_plain_library_may_require_torch_and_that_of_others_has_it():
    wheel = '\n[wheel]\nrequires = ["torch>=2.10"]\n'
    assert parse(source(ONE + TABLE + PARTS + wheel)).wheel.requires == ("torch>=2.10",)
    (problem,) = problems_of(f"{GENERAL}[torch]\n{wheel}")
    assert (problem.code, problem.key) == ("B054", ("wheel", "requires", 0))


def test_it_stands_alone_and_older_editions_do_not_have_it():
    (problem,) = problems_of(f"{ONE}[torch]\n{TABLE}{PARTS}")
    assert problem.code == "B015"
    (problem, *_) = problems_of(ONE.replace("edition = 5\n", "") + TABLE + PARTS)
    assert (problem.code, problem.key) == ("B010", ("ctypes",))


def test_the_portability_of_a_config_says_that_only_this_builder_has_the_table(tmp_path):
    text = source(ONE + TABLE + PARTS)
    kernel = Kernel(root=tmp_path, config=parse(text), source=text, schema=5)
    (problem,) = portability.check(kernel)
    assert (problem.code, problem.key) == ("B130", ("ctypes",))


@given(st.one_of(st.text(max_size=40), st.from_regex(r"[a-z_*?]{1,4}[a-z*?;\n}$ ]{0,6}", fullmatch=True)))
def test_any_text_is_a_name_or_a_glob_that_a_linker_takes_or_is_refused(text):
    try:
        found = ExportGlob(text)
    except InvalidValueError:
        return
    assert set(found) <= set("*?_") | set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
    assert not found.startswith(("*", "?"))
    assert five("[torch]\n").ctypes is None
    config = parse(source(f"{ONE}[ctypes]\nexports = [{toml.spelled(text)}]\n{PARTS}"))
    assert config.ctypes.exports == (text,)


def test_a_glob_names_what_begins_as_it_says():
    assert exported({"cscale_f", "cscale_g", "scale", "Cscale_f"}, ["cscale_?"]) == {"cscale_f", "cscale_g"}
    assert exported({"f", "g", "gg"}, ["g", "h"]) == {"g"}
    assert exported({"f"}, []) == frozenset()
