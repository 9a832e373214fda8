"""Cells of a kernel whose library is built for each Python."""

import json

import jsonschema
import pytest

from builder import pins, resources
from builder.ci.plan import documents, make, text
from builder.ci.plan.jobs import Runners, work_of
from builder.ci.plan.jobs import jobs as make_jobs
from builder.config import Backend
from builder.matrix import decide, rows, select
from builder.matrix.selection import Scope
from tests.config.texts import GENERAL, five, problems_of
from tests.given.kernels import of_text

EACH = """[torch]
python-abi = "cpython"
[kernel.part]
backend = "cpu"
depends = ["torch"]
src = ["part.cpp", "other.cpp"]
"""
LINUX = tuple(row for row in rows() if str(row.torch) == "2.13" and row.system == "x86_64-linux")


@pytest.fixture
def config():
    return five(EACH)


def test_a_row_has_a_cell_for_each_python_of_its_torch_and_the_decision_says_which(config):
    built = [one for one in decide(config, LINUX) if one.cell is not None and one.cell.backend is Backend.CPU]
    assert [one.cell.python for one in built] == ["cp310", "cp311", "cp312", "cp313", "cp314"]
    assert str(built[-1].row) == "torch 2.13, cpu, x86_64-linux, Python 3.14"
    assert built[-1].cell.variant == "torch213-cxx11-cpu-x86_64-linux-cp314"


def test_a_backend_without_a_component_keeps_its_one_wheel(config):
    cuda = [cell for cell in select(config, LINUX) if cell.backend is Backend.CUDA]
    assert [(cell.variant, cell.python) for cell in cuda] == [("torch-cuda", None)]


def test_rows_that_give_no_cell_are_said_once(config):
    refused = [one for one in decide(config, LINUX) if one.row.backend is Backend.ROCM]
    assert len(refused) == len([row for row in LINUX if row.backend is Backend.ROCM])
    assert {one.row.python for one in refused} == {None}


def test_every_torch_of_the_matrix_has_pythons_among_them_all_that_are_pinned():
    known = pins.load()
    of_torch = {str(row.torch): row.pythons for row in rows()}
    assert all(of_torch.values())
    for part in known.parts:
        if part.name == "torch" and part.version in of_torch:
            pinned = {python for pythons in part.wheels.values() for python in pythons}
            assert pinned <= set(of_torch[part.version])


def test_the_plan_says_what_one_library_would_save():
    each, usual = GENERAL + EACH, GENERAL + EACH.replace('python-abi = "cpython"\n', "")
    assert "would save 4 wheels and" in text.of_one_library(make(of_text(each), LINUX, Scope()), LINUX)
    assert text.of_one_library(make(of_text(usual), LINUX, Scope()), LINUX) == ""


def test_the_document_names_the_python_of_a_cell():
    plan = make(of_text(GENERAL + EACH), LINUX, Scope())
    jobs = make_jobs(tuple(work_of(plan)), place=Runners().place, shards=2)
    found = json.loads(documents.document(plan, Runners(), jobs))
    jsonschema.validate(found, json.loads((resources.DATA / "matrix.schema.json").read_text(encoding="utf-8")))
    assert [cell.get("python") for cell in found["cells"]] == ["cp310", "cp311", "cp312", "cp313", "cp314", None]


@pytest.mark.parametrize(
    ("value", "code"),
    [
        pytest.param('"cpyhton"', "B013", id="misspelled"),
        pytest.param('"abi3"', "B013", id="another ABI"),
        pytest.param('["cpython"]', "B012", id="a list"),
        pytest.param("true", "B012", id="a boolean"),
        pytest.param('"cp312"', "B013", id="a tag"),
        pytest.param('"cpython\\n"', "B013", id="a newline"),
    ],
)
def test_another_value_is_refused_at_its_place(value, code):
    (problem,) = problems_of(GENERAL + f"[torch]\npython-abi = {value}\n")
    assert (problem.code, problem.key) == (code, ("torch", "python-abi"))


def test_the_full_api_and_the_stable_abi_of_torch_exclude_each_other():
    (problem,) = problems_of(GENERAL + '[torch]\nstable-abi = "2.10"\npython-abi = "cpython"\n')
    assert (problem.code, problem.key) == ("B015", ("torch", "python-abi"))
