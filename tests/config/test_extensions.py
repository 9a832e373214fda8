"""Further libraries of a wheel: what `[extension.<name>]` takes, and which components name one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.config import Backend, parse, read, update
from builder.config.source_tables import Extension
from builder.config.text import dotted
from builder.errors import ConfigError
from builder.kernel import load
from builder.lint import portability
from tests.config.dump import dump
from tests.config.texts import GENERAL, five, problems_of, source

TORCH = '[torch]\nsrc = ["a.cpp"]\n'
MAIN = '[kernel.a]\nbackend = "cpu"\ndepends = []\nsrc = ["a1.cpp"]\n'
MEMBER = '[kernel.b]\nbackend = "cpu"\ndepends = []\nsrc = ["b1.cpp"]\nextension = "moe"\n'
EXTENSION = (
    '[extension.moe]\nsrc = ["b.cpp"]\ndefines = { X = 1 }\nlibraries = ["dl"]\nfile-flags = { "b.cpp" = ["-O1"] }\n'
)
WHOLE = TORCH + MAIN + MEMBER + EXTENSION


def test_an_extension_has_its_own_binding_and_the_components_that_name_it():
    config = five(WHOLE)
    assert config.extension == {
        "moe": Extension(src=("b.cpp",), defines={"X": 1}, libraries=("dl",), file_flags={"b.cpp": ("-O1",)})
    }
    assert config.extensions(Backend.CPU) == ("moe",)
    assert config.extensions(Backend.CUDA) == ()
    assert [path for path, _ in config.tables(Backend.CPU)] == [
        ("torch",), ("extension", "moe"), ("kernel", "a"), ("kernel", "b"),
    ]  # fmt: skip


def test_a_library_by_itself_is_that_of_a_kernel_without_the_others():
    config = five(WHOLE)
    main, moe = config.of_library(None), config.of_library("moe")
    assert (main.torch.src, tuple(main.kernel), main.extension) == (("a.cpp",), ("a",), {})
    assert (moe.torch.src, tuple(moe.kernel), moe.extension) == (("b.cpp",), ("b",), {})
    assert (main.libraries(Backend.CPU), moe.libraries(Backend.CPU)) == ((), ("dl",))
    assert config.libraries(Backend.CPU) == ("dl",)


def test_a_config_with_extensions_is_written_and_read_again():
    config = five(WHOLE)
    assert parse(source(dump(config))) == config
    assert update.rewrite(source(GENERAL + WHOLE)) == GENERAL + WHOLE


def test_an_extension_is_refused_before_edition_5():
    problems = problems_of(GENERAL.replace("edition = 5\n", "") + WHOLE.replace('extension = "moe"\n', ""))
    assert problems[0].help == "that key came with edition 5: add 'edition = 5' to [general]"


@pytest.mark.parametrize(
    ("old", "new", "place", "code"),
    [
        pytest.param("moe", "Moe", "extension.Moe", "B043", id="upper case"),
        pytest.param("moe", "1moe", "extension.1moe", "B043", id="digit first"),
        pytest.param("moe", "a-b", "extension.a-b", "B043", id="dash"),
        pytest.param("[extension.moe]", '[extension."../x"]', "extension.../x", "B043", id="path"),
        pytest.param("[extension.moe]", '[extension."a\\nb"]', "extension.a\\nb", "B043", id="newline"),
        pytest.param("[extension.moe]", '[extension."${X}"]', "extension.${X}", "B043", id="variable of CMake"),
        pytest.param("[extension.moe]", '[extension."a;b"]', "extension.a;b", "B043", id="list of CMake"),
        pytest.param("[extension.moe]", '[extension."import os"]', "extension.import os", "B043", id="Python"),
        pytest.param("[extension.moe]", '[extension.""]', "extension.", "B043", id="empty"),
        pytest.param("moe]", "relu]", "extension.relu", "B044", id="the kernel's own module"),
        pytest.param('"moe"', '"mow"', "kernel.b.extension", "B044", id="another name"),
        pytest.param('extension = "moe"\n', "", "extension.moe", "B044", id="no component"),
        pytest.param(MAIN, "", "kernel.b.extension", "B044", id="no main library"),
        pytest.param(TORCH, '[tvm-ffi]\nsrc = ["a.cpp"]\n', "extension.moe", "B044", id="tvm-ffi"),
        pytest.param(TORCH, "[torch-noarch]\n", "extension.moe", "B044", id="noarch"),
        pytest.param('"moe"', "1", "kernel.b.extension", "B012", id="number"),
        pytest.param('"moe"', '["moe"]', "kernel.b.extension", "B012", id="several"),
        pytest.param(
            "defines", "python-abi = 'cpython'\ndefines", "extension.moe.python-abi", "B010", id="key of torch"
        ),
        pytest.param('["b.cpp"]', '["../b.cpp"]', "extension.moe.src[0]", "B023", id="outside"),
    ],
)
def test_a_bad_extension_is_refused_where_it_stands(old, new, place, code):
    problems = problems_of(GENERAL + WHOLE.replace(old, new))
    assert (place, code) in {
        (dotted(problem.key).replace("'", "").replace('"', ""), problem.code) for problem in problems
    }
    assert all(problem.span is not None for problem in problems)


def test_an_extension_that_is_not_there_is_told_the_nearest_one():
    (problem,) = [each for each in problems_of(GENERAL + WHOLE.replace('"moe"', '"mow"')) if each.key[0] == "kernel"]
    assert (problem.message, problem.help) == ("there is no [extension.mow]", "did you mean 'moe'?")


CONDITION = WHOLE + 'when = { torch = ">=2.10", system = "x86_64-linux" }\n'


def test_a_condition_of_an_extension_is_written_and_read_again():
    config = five(CONDITION)
    assert config.extension["moe"].when.systems == ("x86_64-linux",)
    assert parse(source(dump(config))) == config
    assert update.rewrite(source(GENERAL + CONDITION)) == GENERAL + CONDITION


@pytest.mark.parametrize(
    ("backends", "entry", "message"),
    [
        (("cpu",), 'cuda = ">=12.8"', "'cuda' never holds in a component of 'cpu'"),
        (("cuda", "rocm"), 'cuda = ">=12.8"', "'cuda' never holds in a component of 'rocm'"),
        (("cuda",), 'arch = "gfx942"', "'gfx942' never holds in a component of 'cuda'"),
        (("cpu", "xpu"), 'arch = "9.0"', "'9.0' never holds in a component of 'cpu' or 'xpu'"),
        (("cuda", "rocm"), 'arch = ["9.0a", "gfx942"]', None),
        (("cuda",), 'cuda = ">=12.8", torch = ">=2.10", arch = "9.0a"', None),
    ],
)
def test_a_condition_that_never_holds_for_a_component_of_the_extension_is_refused(backends, entry, message):
    parts = "".join(
        (MAIN + MEMBER).replace("kernel.", f"kernel.{backend}-").replace('"cpu"', f'"{backend}"')
        for backend in backends
    )
    text = GENERAL + TORCH + parts + EXTENSION + f"when = {{ {entry} }}\n"
    if message is None:
        assert read(source(text)).config.extension["moe"].when is not None
        return
    (problem,) = problems_of(text)
    assert (problem.code, problem.key[:3], problem.message) == ("B042", ("extension", "moe", "when"), message)
    assert problem.span is not None


@pytest.mark.parametrize(
    ("entry", "code"),
    [('cuda = "13"', "B042"), ("cuda = 13", "B012"), ('os = "linux"', "B010"), ('system = "linux"', "B029")],
)
def test_a_condition_of_an_extension_takes_what_that_of_a_component_takes(entry, code):
    found = problems_of(GENERAL + WHOLE + f"when = {{ {entry} }}\n")
    of_a_component = problems_of(GENERAL + TORCH + MAIN + f"when = {{ {entry} }}\n")
    assert {code} == {problem.code for problem in found} == {problem.code for problem in of_a_component}


def test_two_extensions_of_one_name_are_no_toml():
    problems = problems_of(GENERAL + WHOLE + EXTENSION)
    assert {problem.code for problem in problems} == {"B002"}


@given(st.text(max_size=70), st.text(max_size=70))
def test_any_name_is_an_extension_or_refused(name, named):
    text = GENERAL + WHOLE.replace("[extension.moe]", f"[extension.{name!a}]").replace('"moe"', f"{named!a}")
    try:
        config = read(source(text)).config
    except ConfigError as error:
        assert error.problems  # noqa: PT017  which of the two it is depends on the name
    else:
        assert tuple(config.extension) == (named,) == (name,)


def test_check_notes_what_the_public_builder_refuses(tmp_path):
    (tmp_path / "torch-ext/relu").mkdir(parents=True)
    for file in ("torch-ext/relu/__init__.py", "a.cpp", "a1.cpp", "b.cpp", "b1.cpp"):
        (tmp_path / file).write_text("", encoding="utf-8")
    (tmp_path / "build.toml").write_text(GENERAL + WHOLE, encoding="utf-8")
    found = portability.check(load(tmp_path))
    assert {dotted(each.key) for each in found if each.code == "B130"} >= {"extension", "kernel.b.extension"}
