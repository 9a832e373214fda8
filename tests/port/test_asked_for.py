"""A setup.py that lets a module write what is compiled: without the module it is said what to do."""

import pytest

from builder.errors import BuilderError
from builder.port import port, record, variables
from tests.port.projects import ported, recorded

SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import CUDAExtension
import {module}
setup(name="made", ext_modules={module}.extensions(CUDAExtension))
"""
MAKES = """
import pathlib

def extensions(kind):
    pathlib.Path("made.cu").write_text("")
    return [kind("made._C", ["made.cu", "csrc/binding.cpp"])]
"""


@pytest.mark.parametrize(
    "more", ["", "\nmissing_writer.not_there.x = 1\nassert False, 'no source'\n"], ids=["nothing", "an error"]
)
def test_a_module_that_may_write_sources_is_named_with_what_to_do(tmp_path, more):
    text = SETUP.format(module="missing_writer").replace("\nsetup(", f"{more}\nsetup(")
    with pytest.raises(BuilderError) as caught:
        port(recorded(tmp_path, text), tmp_path)
    assert "'missing_writer' is not there, and a stand-in answered, which writes no source" in str(caught.value)
    assert f"pip install --target {tmp_path} missing_writer" in caught.value.help
    assert "--compile-commands FILE" in caught.value.help


def test_a_module_beside_the_setup_writes_what_is_compiled(tmp_path):
    found = ported(tmp_path, SETUP.format(module="writer"), files={"writer.py": MAKES})
    assert (
        "setup.py writes made.cu: a file that is compiled has to be in the project or in [[generate]]"
        in found.remaining
    )


def test_the_search_for_a_variable_names_the_module_too(tmp_path):
    recording = recorded(tmp_path, SETUP.format(module="missing_writer"))
    options = {"home": None, "given": {}, "sandboxed": False, "seconds": record.SECONDS}
    error = variables.needs_some(recording, tmp_path, **options)
    assert "'missing_writer' is not there" in str(error)
