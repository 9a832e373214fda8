"""Keys that only this builder reads: in the current edition alone, and named by `check`."""

import pytest

from builder import toml
from builder.config import Backend, parse, update
from builder.config.text import dotted
from builder.kernel import load
from builder.lint import portability
from tests.config.dump import dump
from tests.config.texts import GENERAL, five, problems_of, source

CPU = '[kernel.a]\nbackend = "cpu"\ndepends = []\nsrc = ["a.cpp"]\n'
TABLES = ["[torch]\n", "[tvm-ffi]\nsrc = []\n", "[torch]\n" + CPU]


@pytest.mark.parametrize("table", TABLES)
def test_a_key_of_ours_is_refused_before_edition_5_and_says_so(table):
    old = GENERAL.replace("edition = 5\n", "") + table + "defines = { X = 1 }\n"
    (problem,) = problems_of(old)
    assert problem.code == "B010"
    assert problem.help == "that key came with edition 5: add 'edition = 5' to [general]"


@pytest.mark.parametrize("table", TABLES)
def test_update_keeps_a_key_of_ours_as_it_stands(table):
    text = GENERAL + table + "defines = { X = 1, Y = 'a b' } # mine\n"
    assert update.rewrite(source(text)) == text


def test_macros_of_every_type_are_read_and_written_back():
    config = five("[torch]\ndefines = { ON = true, OFF = false, N = 4, TYPE = 'half', EMPTY = '' }\n")
    assert config.torch.defines == {"ON": True, "OFF": False, "N": 4, "TYPE": "half", "EMPTY": ""}
    assert parse(source(dump(config))) == config


@pytest.mark.parametrize(
    ("value", "code", "help_"),
    [
        ("{ X = 1.5 }", "B012", None),
        ("{ X = [1] }", "B012", None),
        ("{ use-x = true }", "B038", None),
        ("{ '-DX=a' = true }", "B038", "write 'X = \"a\"'"),
        ("{ 'X=' = true }", "B038", "write 'X'"),
        ("{ -DX = true }", "B038", "write 'X'"),
    ],
)
def test_a_macro_that_is_none_is_refused_at_its_own_line(value, code, help_):
    (problem,) = problems_of(GENERAL + "[torch]\n" + f"defines = {value}\n")
    assert (problem.code, problem.help) == (code, help_)
    assert problem.span is not None
    assert dotted(problem.key).startswith("torch.defines.")


def test_a_value_of_the_wrong_type_names_those_that_are_right():
    (problem,) = problems_of(GENERAL + "[torch]\ndefines = { X = 1.5 }\n")
    assert problem.message == "'X' must be a boolean, an integer or a string, found a float"


def test_check_notes_each_key_that_the_public_builder_refuses(tmp_path):
    text = GENERAL + "[torch]\ndefines = {}\n" + CPU + "defines.X = 1\n"
    (tmp_path / "build.toml").write_text(text, encoding="utf-8")
    found = [problem for problem in portability.check(load(tmp_path)) if problem.code == "B130"]
    assert [dotted(problem.key) for problem in found] == ["torch.defines", "kernel.a.defines"]
    assert {problem.severity for problem in found} == {"note"}


def test_a_config_without_such_keys_is_written_without_them():
    text = dump(five("[torch]\n" + CPU))
    assert set(toml.loads(text)["kernel"]["a"]) == {"backend", "depends", "src"}
    assert five("[torch]\n" + CPU).components(Backend.CPU)["a"].defines == {}


def test_a_misspelt_backend_of_a_kernel_table_is_one_problem_that_names_the_key():
    table = CPU.replace("backend =", "backends =")
    (problem,) = problems_of(f"{GENERAL}[torch]\n{table}")
    assert (problem.code, dotted(problem.key)) == ("B010", "kernel.a.backends")
    assert problem.help == "did you mean 'backend'?"


def test_a_kernel_table_with_a_backend_and_a_stranger_is_told_of_the_stranger():
    (problem,) = problems_of(f"{GENERAL}[torch]\n{CPU}backends = ['cpu']\n")
    assert problem.message == "unknown key 'backends' in [kernel.a]"
