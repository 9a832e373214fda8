"""The table [wheel]: what a wheel contains and requires besides its library."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from builder import toml
from builder.config import parse
from builder.config.update import rewrite
from builder.config.values import InvalidValueError
from builder.config.wheel_values import PackageRequirement, WheelVersion
from builder.matrix import rows, select
from builder.wheel.finish import wheel_version
from builder.wheel.options import BuildOptions
from tests.config.dump import dump
from tests.config.texts import GENERAL, five, problems_of, source

WHEEL = """[torch]
[wheel]
readme = "docs/README.md"
package = "python/relu"
requires = ["tokenizers>=0.20", "rich[jupyter]==13.* ; python_version < '3.13'"]
data = ["python/relu/**/*.json"]
"""


def test_the_table_is_read_written_and_kept_by_update():
    config = five(WHEEL)
    assert (config.wheel.package, config.wheel.readme) == ("python/relu", "docs/README.md")
    assert config.wheel.requires == ("tokenizers>=0.20", "rich[jupyter]==13.* ; python_version < '3.13'")
    assert config.wheel.data == ("python/relu/**/*.json",)
    assert parse(source(dump(config))) == config
    assert rewrite(source(GENERAL + WHEEL)) == GENERAL + WHEEL


def test_a_config_without_it_requires_nothing():
    assert five("[torch]\n").wheel.requires == ()


@pytest.mark.parametrize(
    ("line", "code", "key"),
    [
        pytest.param("package = 1", "B012", ("package",), id="a number for a folder"),
        pytest.param('package = ["a"]', "B012", ("package",), id="a list for a folder"),
        pytest.param('package = "../relu"', "B023", ("package",), id="a folder outside"),
        pytest.param('package = "/relu"', "B023", ("package",), id="an absolute folder"),
        pytest.param('package = "a\\nb"', "B023", ("package",), id="a newline in a folder"),
        pytest.param('package = ""', "B023", ("package",), id="no folder"),
        pytest.param("readme = 1", "B012", ("readme",), id="a number for a readme"),
        pytest.param('readme = { file = "README.md" }', "B012", ("readme",), id="a table for a readme"),
        pytest.param('readme = "/README.md"', "B023", ("readme",), id="an absolute readme"),
        pytest.param('readme = "../README.md"', "B023", ("readme",), id="a readme outside"),
        pytest.param('readme = "a\\nName: evil"', "B023", ("readme",), id="a newline in a readme"),
        pytest.param('requires = "rich"', "B012", ("requires",), id="a text for requirements"),
        pytest.param("requires = [1]", "B012", ("requires", 0), id="a number for a requirement"),
        pytest.param(
            'requires = ["a", "rich @ https://example.org/rich.whl"]', "B054", ("requires", 1), id="an address"
        ),
        pytest.param('requires = ["git+https://example.org/x"]', "B054", ("requires", 0), id="a repository"),
        pytest.param('requires = ["--index-url=x"]', "B054", ("requires", 0), id="an option"),
        pytest.param('requires = ["-r requirements.txt"]', "B054", ("requires", 0), id="a file"),
        pytest.param('requires = ["rich\\nRequires-Dist: evil"]', "B054", ("requires", 0), id="a field of METADATA"),
        pytest.param('requires = ["./rich"]', "B054", ("requires", 0), id="a folder as a requirement"),
        pytest.param('requires = [""]', "B054", ("requires", 0), id="no requirement"),
        pytest.param('requires = ["Torch>=2.10"]', "B054", ("requires", 0), id="torch"),
        pytest.param("version = 1", "B012", ("version",), id="a number for a version"),
        pytest.param('version = "1.2+cu130"', "B057", ("version",), id="a label"),
        pytest.param('version = "1.2\\nName: evil"', "B057", ("version",), id="a field of METADATA in a version"),
        pytest.param('version = "2.1"', "B057", ("version",), id="a version of another API"),
        pytest.param('version = "latest"', "B057", ("version",), id="a word for a version"),
        pytest.param('version = "1!1.2"', "B057", ("version",), id="an epoch"),
        pytest.param('data = "x.json"', "B012", ("data",), id="a text for files"),
        pytest.param('data = ["../x.json"]', "B023", ("data", 0), id="a file outside"),
        pytest.param('datas = ["x.json"]', "B010", ("datas",), id="a misspelled key"),
    ],
)
def test_another_value_is_refused_at_its_place(line, code, key):
    (problem,) = problems_of(f"{GENERAL}[torch]\n[wheel]\n{line}\n")
    assert (problem.code, problem.key) == (code, ("wheel", *key))
    assert problem.span is not None


@pytest.mark.parametrize(
    ("text", "help_"),
    [
        ("rich @ https://example.org/rich.whl", "name a package of an index, and not an address"),
        ("rich at 13", None),
    ],
)
def test_a_requirement_that_is_refused_has_a_remedy_where_there_is_one(text, help_):
    assert PackageRequirement.remedy(text) == help_


def test_an_older_edition_has_no_such_table():
    text = GENERAL.replace("edition = 5\n", "") + "[torch]\n[wheel]\ndata = []\n"
    (problem,) = problems_of(text)
    assert (problem.code, problem.key) == ("B010", ("wheel",))


@given(st.one_of(st.text(max_size=60), st.from_regex(r"[a-z]{1,5}[ @;\[\]<>=~!.0-9a-z'\"()-]{0,20}", fullmatch=True)))
def test_any_text_is_a_requirement_of_one_line_or_is_refused(text):
    try:
        found = PackageRequirement(text)
    except InvalidValueError:
        return
    assert found == text
    assert found.isprintable()
    assert "@" not in found
    assert five(f"[torch]\n[wheel]\nrequires = [{toml.spelled(text)}]\n").wheel.requires == (text,)


def test_a_kernel_for_torch_may_bound_tvm_ffi_and_one_for_tvm_ffi_has_it_anyway():
    wheel = '[wheel]\nrequires = ["rich", "apache_tvm.ffi<=0.1.11"]\n'
    assert [each.package for each in five(f"[torch]\n{wheel}").wheel.requires] == ["rich", "apache-tvm-ffi"]
    (problem,) = problems_of(f'{GENERAL}[tvm-ffi]\nsrc = ["a.cpp"]\n{wheel}')
    assert (problem.code, problem.key) == ("B054", ("wheel", "requires", 1))
    assert "the 'apache-tvm-ffi' that it was built with" in problem.help


@given(st.from_regex(WheelVersion.pattern, fullmatch=True))
def test_a_version_of_a_wheel_is_one_of_pep_440(text):
    version = Version(text)
    assert (version.local, version.epoch, version.major) == (None, 0, WheelVersion(text).major)


def test_a_wheel_has_the_version_of_its_table_unless_another_is_asked_for():
    config = five('[torch]\n[wheel]\nversion = "1.8.4"\n')
    assert parse(source(dump(config))) == config
    assert (config.wheel_version, five("[torch]\n").wheel_version) == ("1.8.4", "1.0.0")
    cell = select(config, rows())[0]
    assert wheel_version(config, cell, BuildOptions()).startswith("1.8.4+")
    assert wheel_version(config, cell, BuildOptions(version="1.9.0", label=False)) == "1.9.0"
    assert wheel_version(config, cell, BuildOptions(label=False, only=("9.0",))) == "1.8.4.dev0"
