"""Steps that generate sources: what `[[generate]]` takes, and how steps fit together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.config import read
from builder.config.sources import GenerateStep
from builder.config.text import dotted
from builder.errors import ConfigError
from tests.config.dump import dump
from tests.config.texts import GENERAL, five, problems_of, source

HEAD = '[torch]\nsrc = ["made/a.cpp", "made/b.cpp"]\ninclude = ["inc"]\n'
STEP = '[[generate]]\nscript = "make.py"\noutputs = ["made/a.cpp"]\n'
REV = "1" * 40


def test_a_step_is_read():
    config = five(HEAD + STEP + 'args = ["--archs={archs}", "{toolkit}{torch}"]\ninputs = ["in/*.txt"]\n')
    assert config.generate == (
        GenerateStep(
            script="make.py",
            args=("--archs={archs}", "{toolkit}{torch}"),
            inputs=("in/*.txt",),
            outputs=("made/a.cpp",),
        ),
    )


def test_steps_are_written_and_read_again():
    config = five(HEAD + STEP + STEP.replace("a.cpp", "b.cpp") + 'args = ["x"]\n[matrix]\nsystems = ["x86_64-linux"]\n')
    assert read(source(dump(config))).config == config


def test_a_step_may_read_what_another_writes():
    second = STEP.replace("a.cpp", "b.cpp") + 'inputs = ["made/a.cpp", "./made/c.json"]\n'
    third = STEP.replace("made/a.cpp", "made/c.json")
    assert len(five(HEAD + STEP + second + third).generate) == 3


@pytest.mark.parametrize("path", ["inc/x.h", "inc/deep/y.h", "./inc//z.h"])
def test_a_header_below_an_include_folder_is_used(path):
    assert five(HEAD + STEP.replace("made/a.cpp", path)).generate


@pytest.mark.parametrize(
    ("old", "new", "key", "code"),
    [
        pytest.param('"make.py"', '"../make.py"', "generate[0].script", "B023", id="outside"),
        pytest.param('"make.py"', '"/usr/bin/x.py"', "generate[0].script", "B023", id="absolute"),
        pytest.param('"make.py"', '"make.sh"', "generate[0].script", "B058", id="no Python"),
        pytest.param('"make.py"', '"cut:make.py"', "generate[0].script", "B058", id="foreign script"),
        pytest.param('script = "make.py"', 'script = "made/a.py"', "generate[0].script", "B058", id="script as output"),
        pytest.param('["made/a.cpp"]', '["../a.cpp"]', "generate[0].outputs[0]", "B023", id="output outside"),
        pytest.param('["made/a.cpp"]', '["/tmp/a.cpp"]', "generate[0].outputs[0]", "B023", id="output absolute"),
        pytest.param('["made/a.cpp"]', "[]", "generate[0].outputs", "B058", id="no output"),
        pytest.param('["made/a.cpp"]', '["made/*.cpp"]', "generate[0].outputs[0]", "B058", id="glob"),
        pytest.param('["made/a.cpp"]', '["made/"]', "generate[0].outputs[0]", "B058", id="folder"),
        pytest.param('["made/a.cpp"]', '["made/c.cpp"]', "generate[0].outputs[0]", "B058", id="used by nothing"),
        pytest.param('["made/a.cpp"]', '["cut:a.cpp"]', "generate[0].outputs[0]", "B058", id="foreign output"),
        pytest.param('["made/a.cpp"]', '["made/a.cpp", "./made/a.cpp"]', "generate[0].outputs[1]", "B058", id="twice"),
        pytest.param('["made/a.cpp"]', '["inc/a", "inc/a/b"]', "generate[0].outputs", "B058", id="file and folder"),
        pytest.param("outputs", 'args = ["{arch}"]\noutputs', "generate[0].args[0]", "B059", id="placeholder"),
        pytest.param("outputs", 'args = ["{}"]\noutputs', "generate[0].args[0]", "B059", id="empty placeholder"),
        pytest.param("outputs", 'args = ["a\\nb"]\noutputs', "generate[0].args[0]", "B059", id="newline"),
        pytest.param("outputs", 'args = [""]\noutputs', "generate[0].args[0]", "B059", id="empty"),
        pytest.param("outputs", "args = [1]\noutputs", "generate[0].args[0]", "B012", id="number"),
        pytest.param("outputs", 'inputs = ["../x"]\noutputs', "generate[0].inputs[0]", "B023", id="input outside"),
        pytest.param("outputs", 'inputs = ["made/a.cpp"]\noutputs', "generate[0].inputs", "B058", id="own output"),
        pytest.param("outputs", 'inputs = ["cut:x"]\noutputs', "generate[0].inputs[0]", "B058", id="foreign input"),
        pytest.param('script = "make.py"', "", "generate[0]", "B011", id="no script"),
        pytest.param("[[generate]]", "[generate]", "generate", "B012", id="a table"),
    ],
)
def test_a_bad_step_is_refused_where_it_stands(old, new, key, code):
    text = STEP.replace(old, new)
    if new.endswith('a.py"'):
        text = text.replace("made/a.cpp", "made/a.py")
    foreign = f'[sources.cut]\ngit = "https://example.org/cut"\nrev = "{REV}"\n'
    problems = problems_of(GENERAL + HEAD + foreign + text)
    assert (dotted(problems[0].key), problems[0].code) == (key, code)
    assert all(problem.span is not None for problem in problems)


def test_two_steps_with_one_output_are_refused():
    (problem,) = problems_of(GENERAL + HEAD + STEP + STEP)
    assert problem.message == "'made/a.cpp' is an output of two steps"


def test_a_cycle_between_steps_is_shown():
    first = STEP + 'inputs = ["made/b.cpp"]\n'
    second = STEP.replace("a.cpp", "b.cpp") + 'inputs = ["made/a.cpp"]\n'
    (problem,) = problems_of(GENERAL + HEAD + first + second)
    assert problem.message.startswith("steps need each other's outputs: step ")


PATHS = st.sampled_from(["made/a.cpp", "made/b.cpp", "inc/x.h", "x", "../y", "", "a/b", "a", "*", "cut:z", "\n", "é"])


@given(
    st.lists(
        st.tuples(PATHS, st.lists(PATHS, max_size=3), st.lists(PATHS, max_size=3), st.text(max_size=9)), max_size=4
    )
)
def test_any_steps_are_read_or_refused(steps):
    text = GENERAL + HEAD
    for script, inputs, outputs, argument in steps:
        lists = (
            f"{key} = {[str(each) for each in value]!a}" for key, value in (("inputs", inputs), ("outputs", outputs))
        )
        quoted = "".join(character for character in argument if character.isalnum() or character in "{} $")
        text += "\n".join(["[[generate]]", f"script = {script!a}", f'args = ["{quoted!s}"]', *lists, ""])
    try:
        config = read(source(text.replace("\\xe9", "\\u00e9").replace("'", '"'))).config
    except ConfigError as error:
        assert error.problems  # noqa: PT017  not every example is refused
        return
    assert read(source(dump(config))).config == config
