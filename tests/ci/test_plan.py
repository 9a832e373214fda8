"""The plan: what is left to build, over which jobs, at which cost, in which format."""

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import resources
from builder.ci.plan import documents, leave_out, make, text, without_stored
from builder.ci.plan.jobs import MOST_JOBS, Costs, Runners, Work, jobs, parse_runners, runner_data, work_of
from builder.config import Backend, Framework, Version, parse
from builder.config.text import Source
from builder.errors import BuilderError, NothingToDoError
from builder.kernel import Kernel
from builder.matrix import SETS, Cell, rows
from builder.matrix.selection import Scope, require_cells

GENERAL = '[general]\nname = "case"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = '
SCHEMA = json.loads((resources.DATA / "matrix.schema.json").read_text(encoding="utf-8"))


def part(backend, extra=""):
    return f'[kernel.{backend}-part]\nbackend = "{backend}"\ndepends = []\nsrc = ["part.cu"]\n{extra}\n'


def kernel(text_):
    source = Source(name="build.toml", text=text_)
    try:
        config = parse(source)
    except BuilderError as error:
        pytest.fail(str(error))
    return Kernel(root=Path("nowhere"), config=config, source=source, schema=5)


CLASSIC = kernel(
    f'{GENERAL}["cpu", "cuda", "rocm"]\n[torch]\nsrc = ["b.cpp"]\n' + "".join(map(part, ("cpu", "cuda", "rocm")))
)
STABLE = kernel(
    f'{GENERAL}["cpu", "cuda"]\n[torch]\nsrc = ["b.cpp"]\nstable-abi = "2.10"\n' + part("cpu") + part("cuda")
)
NOARCH = kernel(f'{GENERAL}["cpu", "cuda"]\n[torch-noarch]\n')
MINVER = kernel(
    f'{GENERAL}["cuda"]\n[torch]\n' + part("cuda") + part("cuda", 'cuda-minver = "13.0"').replace("part]", "new]")
)


def plan(of=CLASSIC, **scope):
    return make(of, rows(), Scope(**scope))


def shared(of, shards=None, runners=None):
    return jobs(tuple(work_of(of)), place=(runners or Runners()).place, shards=shards)


@pytest.mark.parametrize("of", [CLASSIC, STABLE, NOARCH, MINVER], ids=["classic", "stable", "noarch", "minver"])
@pytest.mark.parametrize("shards", [None, 20], ids=["whole", "sharded"])
def test_the_document_is_what_the_published_schema_says(of, shards):
    whole = plan(of, unbundled=True)
    split = None if shards is None else shared(whole, shards)
    document = json.loads(documents.document(whole, Runners(), split))
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert [cell["variant"] for cell in document["cells"]] == [cell.variant for cell in whole.cells]
    assert len(document["cells"]) + len(document["skipped"]) == len(whole.decisions) + len(whole.notes)


def test_the_schema_refuses_a_document_that_says_more_or_less():
    document = json.loads(documents.document(plan(), Runners(), None))
    for broken in (
        {**document, "extra": 1},
        {"kernel": "case", "cells": []},
        {**document, "cells": [{**document["cells"][0], "runner": "${{ x }}"}]},
        {**document, "skipped": [{**document["skipped"][0], "rule": "whim"}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft202012Validator(SCHEMA).validate(broken)


def test_a_skipped_row_names_the_line_that_decided():
    text_ = STABLE.source.text.replace('"2.10"', '"2.14"')
    document = json.loads(documents.document(plan(kernel(text_), unbundled=True), Runners(), None))
    by_rule = {one["rule"]: one for one in document["skipped"]}
    lines = text_.splitlines()
    assert lines[by_rule["stable-abi"]["line"] - 1] == 'stable-abi = "2.14"'
    assert lines[by_rule["backend"]["line"] - 1] == 'backends = ["cpu", "cuda"]'


def test_a_table_of_stable_abis_is_named_by_the_entry_of_the_backend():
    table = '[torch]\n[torch.stable-abi]\ncpu = "2.10"\ncuda = "2.11"\n'
    one = plan(kernel(f'{GENERAL}["cpu", "cuda"]\n{table}' + part("cpu") + part("cuda")))
    merged = next(each for each in one.decisions if each.rule == "merged" and each.row.backend is Backend.CUDA)
    assert one.where(merged) == "build.toml:10 (torch.stable-abi.cuda)"


def test_a_component_that_a_cell_leaves_out_is_in_every_format():
    one = plan(MINVER, systems=("x86_64-linux",), sets=("release", "legacy"))
    message = "3 cells: component 'cuda-new' is left out: CUDA 12.6 is below its cuda-minver"
    assert message in text.table(one, None)
    assert message in text.explain(one)
    skipped = json.loads(documents.document(one, Runners(), None))["skipped"]
    skipped = [each for each in skipped if each["rule"] == "cuda-minver"]
    assert len(skipped) == 3
    assert MINVER.source.text.splitlines()[skipped[0]["line"] - 1] == 'cuda-minver = "13.0"'


def test_explain_says_of_every_candidate_row_what_became_of_it():
    one = plan(STABLE, unbundled=True, sets=("release", "preview"))
    shown = text.explain(one)
    for decision in one.decisions:
        assert f"  {decision.row}: " in shown
        assert decision.message in shown
    assert shown.count("decided by build.toml:") == len([each for each in one.skipped if each.key])


def test_a_table_has_every_cell_under_its_backend_and_says_what_all_would_add():
    one = plan()
    shown = text.table(one, None)
    assert all(cell.variant in shown for cell in one.cells)
    assert "cpu (9)" in shown
    assert "cuda (14)" in shown
    legacy = ("legacy",)
    assert "1 more with --all" in text.table(plan(sets=legacy), None)
    assert "with --all" not in text.table(plan(sets=legacy, unbundled=True), None)


def test_names_are_one_on_a_line_and_each_once():
    assert text.names((plan(NOARCH),), None) == "torch-cpu\ntorch-cuda\n"
    one = plan(backends=(Backend.CPU,), systems=("aarch64-darwin",))
    names = " ".join(f"torch{torch}-cpu-aarch64-darwin" for torch in (213, 214, 215))
    assert text.names((one,), shared(one)) == f"{names}\n"


def test_a_backend_that_the_kernel_does_not_have_is_refused():
    with pytest.raises(BuilderError, match="'case' has no backend 'xpu': it has cpu, cuda, rocm"):
        plan(backends=(Backend.XPU,))


def test_an_empty_plan_gives_the_reason_for_each_row_with_its_line():
    one = plan(kernel(f'{GENERAL}["cpu", "neuron"]\n[torch]\nminver = "2.20"\n' + part("cpu")))
    with pytest.raises(NothingToDoError) as raised:
        require_cells(one)
    assert raised.value.exit_code == 3
    assert "torch 2.13, cpu, x86_64-linux: torch 2.13 is below minver 2.20, build.toml:8 (torch.minver)" in str(
        raised.value
    )
    assert "neuron: this part of the matrix has no row for it" in str(raised.value)


def test_stored_cells_are_left_out_and_counted():
    one = without_stored(plan(), lambda cell: cell.backend is Backend.CUDA)
    assert {cell.backend for cell in one.cells} == {Backend.CPU, Backend.ROCM}
    assert "14 in the store" in text.table(one, None)
    assert Counter(each.rule for each in one.skipped)["stored"] == 14


def test_a_cell_left_out_takes_its_notes_along():
    one = leave_out(plan(MINVER), rule="stored", remedy="none", why=lambda _: "because")
    assert one.cells == ()
    assert one.notes == ()


# Runners and containers.


def test_every_row_of_the_matrix_has_a_runner():
    for set_ in SETS:
        whole = plan(kernel(f'{GENERAL}["cpu", "cuda", "rocm", "xpu", "metal", "tpu"]\n[torch-noarch]\n'), sets=(set_,))
        assert all(Runners().place(cell).runner for cell in whole.cells)


def test_containers_are_for_the_toolkits_that_are_not_wheels():
    text_ = f'{GENERAL}["cpu", "cuda", "rocm", "xpu", "metal"]\n[torch]\n'
    whole = plan(kernel(text_ + "".join(map(part, ("cpu", "cuda", "rocm", "xpu", "metal")))))
    with_container = {(cell.backend.value, cell.toolkit) for cell in whole.cells if Runners().place(cell).container}
    assert with_container == {
        ("cuda", "12.6"),
        ("rocm", "7.1"),
        ("rocm", "7.2"),
        ("xpu", "2026.0.0"),
        ("xpu", "2026.1.0"),
    }


def test_a_noarch_cell_needs_no_container():
    whole = plan(kernel(f'{GENERAL}["cuda", "rocm", "xpu"]\n[torch-noarch]\n'))
    assert {Runners().place(cell).container for cell in whole.cells} == {None}


def test_every_container_of_the_data_is_of_a_row():
    known = {(row.backend.value, row.system, ".".join(str(row.toolkit).split(".")[:2])) for row in rows()}
    assert {(one["backend"], one["system"], one["toolkit"]) for one in runner_data()["container"]} <= known


def test_a_runner_of_ones_own_takes_the_place_of_the_default():
    own = parse_runners(("aarch64-linux=my-arm_box.1",))
    places = {cell.system: own.place(cell).runner for cell in plan().cells}
    assert places["aarch64-linux"] == "my-arm_box.1"
    assert places["x86_64-linux"] == "ubuntu-24.04"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        pytest.param("aarch64-linus=x", "did you mean 'aarch64-linux'", id="unknown system"),
        pytest.param("x86_64-windows=x", "is not SYSTEM=LABEL of a known runner", id="system without a runner"),
        pytest.param("ubuntu", "is not SYSTEM=LABEL", id="no label"),
        pytest.param("", "is not SYSTEM=LABEL", id="empty"),
        pytest.param("x86_64-linux=", "'' is not the label of a runner", id="empty label"),
        pytest.param("x86_64-linux=${{ github.token }}", "is not the label", id="expression"),
        pytest.param(
            "x86_64-linux=a\n::set-env name=x::y", r"'a\\n::set-env name=x::y' is not the label", id="command"
        ),
        pytest.param("x86_64-linux=$(id)", "is not the label", id="shell"),
        pytest.param("x86_64-linux=a,b", "is not the label", id="list"),
        pytest.param("x86_64-linux=" + "a" * 200, "is not the label", id="endless"),
    ],
)
def test_a_runner_that_is_unknown_or_could_inject_is_refused(setting, message):
    with pytest.raises(BuilderError, match=message) as raised:
        parse_runners((setting,))
    assert "\n::" not in str(raised.value)


# Jobs.


HERE = Runners(
    own=dict.fromkeys([f"system-{number}" for number in range(MOST_JOBS + 1)] + ["a", "b", "c"], "mine")
).place


def cell_of(number, backend=Backend.CPU, system="x86_64-linux"):
    return Cell(
        variant=f"torch{number}-cxx11-{backend}-{system}",
        framework=Framework.TORCH,
        backend=backend,
        system=system,
        torch=Version("2.13"),
        toolkit=None,
        compute=backend.value,
    )


def test_a_job_has_one_backend_one_system_and_one_container():
    one = plan()
    found = shared(one)
    assert [cell for job in found for cell in job.cells] != []
    for job in found:
        assert {(cell.backend, cell.system, Runners().place(cell)) for cell in job.cells} == {
            (job.backend, job.system, job.place)
        }
    assert len({job.name for job in found}) == len(found)
    assert sorted(cell.variant for job in found for cell in job.cells) == sorted(cell.variant for cell in one.cells)


def test_a_noarch_wheel_is_built_by_one_job():
    variants = [cell.variant for job in shared(plan(NOARCH)) for cell in job.cells]
    assert sorted(variants) == ["torch-cpu", "torch-cuda"]


@pytest.mark.parametrize("shards", [0, -1, 257, 100_000])
def test_a_number_of_shards_out_of_range_is_refused(shards):
    with pytest.raises(BuilderError, match=f"{shards} shards: a matrix has 1 to 256 jobs"):
        shared(plan(), shards)


def test_fewer_shards_than_machines_are_refused_with_the_machines():
    with pytest.raises(BuilderError, match="1 shard is too few: the cells need 3 different machines") as raised:
        shared(plan(backends=(Backend.CPU,)), 1)
    assert "cpu-aarch64-darwin" in str(raised.value)
    assert "pass at least 3" in str(raised.value)


def work(cells, price=None):
    return [Work(cell=cell, cost=1.0 if price is None else price[cell.variant]) for cell in cells]


def test_a_matrix_over_the_limit_is_refused():
    cells = [cell_of(number, system=f"system-{number}") for number in range(MOST_JOBS + 1)]
    with pytest.raises(BuilderError, match="the plan needs 257 jobs, and a matrix has at most 256"):
        jobs(work(cells), place=HERE)


def test_a_job_whose_variants_do_not_fit_into_a_variable_is_refused():
    cells = [cell_of(number) for number in range(4000)]
    with pytest.raises(BuilderError, match="a job of 4000 variants is too long for a workflow") as raised:
        documents.github(jobs(work(cells), place=HERE))
    assert "--shards" in str(raised.value)
    assert len(json.loads(documents.github(jobs(work(cells), place=HERE, shards=256)))["include"]) == 256


def test_a_matrix_larger_than_the_output_of_a_job_is_refused():
    cells = [cell_of(number) for number in range(30_000)]
    with pytest.raises(BuilderError, match=r"the matrix has \d+ bytes"):
        documents.github(jobs(work(cells), place=HERE, shards=256))


@given(
    costs=st.lists(st.integers(1, 1000), min_size=1, max_size=60),
    systems=st.lists(st.sampled_from(("a", "b", "c")), min_size=60, max_size=60),
    extra=st.integers(0, 80),
)
def test_shards_hold_every_cell_once_and_are_balanced(costs, systems, extra):
    cells = [cell_of(number, system=system) for number, system in enumerate(systems[: len(costs)])]
    price = {cell.variant: float(cost) for cell, cost in zip(cells, costs, strict=True)}
    shards = min(MOST_JOBS, len({cell.system for cell in cells}) + extra)
    found = jobs(work(cells, price), place=HERE, shards=shards)
    assert len(found) == min(shards, len(cells))
    assert sorted(cell.variant for job in found for cell in job.cells) == sorted(price)
    assert all(job.cells for job in found)
    assert {job.seconds for job in found} == {sum(price[cell.variant] for cell in job.cells) for job in found}
    for system in set(systems[: len(costs)]):
        loads = [job.seconds for job in found if job.system == system]
        dearest = max(price[cell.variant] for cell in cells if cell.system == system)
        # The dearest-first rule: no job is above the mean by more than one cell.
        assert max(loads) <= sum(loads) / len(loads) + dearest


def test_the_same_cells_give_the_same_jobs():
    assert shared(plan(), 30) == shared(plan(), 30)


# Costs.


def test_the_stable_abi_saves_wheels_and_seconds():
    found = {one.backend.value: one for one in text.savings(plan(STABLE), rows())}
    assert (found["cpu"].wheels, found["cpu"].wheels_without) == (3, 9)
    assert (found["cuda"].wheels, found["cuda"].wheels_without) == (6, 14)
    classic, stable = runner_data()["cost"]["classic"], runner_data()["cost"]["stable"]
    assert found["cuda"].seconds == pytest.approx(6 * (stable["host"] + stable["cuda"]))
    assert found["cuda"].seconds_without == pytest.approx(14 * (classic["host"] + classic["cuda"]))
    shown = text.table_of_savings(plan(STABLE), rows())
    assert "total    9       23" in shown
    assert "14 wheels" in shown


def test_a_classic_or_noarch_kernel_saves_nothing():
    for of in (CLASSIC, NOARCH):
        assert all(one.wheels == one.wheels_without for one in text.savings(plan(of), rows()))


def test_a_cell_without_a_component_costs_less():
    costs = {cell.toolkit: Costs(MINVER.config).compile_seconds(cell) for cell in plan(MINVER).cells}
    assert costs["12.6"] * 2 == costs["13.0"]


# Programs that read it.


def test_github_gets_one_line_with_a_job_for_each_machine():
    line = documents.github(shared(plan()))
    assert line.count("\n") == 1
    include = json.loads(line)["include"]
    cuda = next(one for one in include if one["name"] == "cuda-x86_64-linux-cu126")
    assert cuda["container"] == "pytorch/manylinux2_28-builder:cuda12.6"
    assert cuda["variants"] == "torch213-cxx11-cu126-x86_64-linux torch214-cxx11-cu126-x86_64-linux"
    assert next(one for one in include if one["backend"] == "cpu")["container"] == ""


def test_nothing_left_to_build_is_an_empty_matrix():
    assert documents.github(()) == '{"include":[]}\n'


@pytest.mark.parametrize("name", ["${{ github.token }}", "a\n::set-env name=x::y", "a`id`", "a'b", "%0A"])
def test_a_value_that_a_workflow_would_obey_is_refused(name):
    job = replace(shared(plan())[0], name=name)
    for form in (documents.github, documents.gitlab):
        with pytest.raises(BuilderError, match="cannot stand in a workflow") as raised:
            form((job,))
        assert "\n::" not in str(raised.value)


def test_ten_thousand_rows_are_planned_in_no_time():
    base = [row for row in rows() if row.set == "release" and not row.noarch]
    among = []
    for number in range(10_000):
        row = base[number % len(base)]
        torch = Version(f"{row.torch.major + number // len(base)}.{row.torch.minor}")
        among.append(replace(row, torch=torch, variant=row.variant.replace("torch2", f"torch{torch.major}", 1)))
    began = time.process_time()
    one = make(CLASSIC, among, Scope())
    found = shared(one, MOST_JOBS)
    documents.document(one, Runners(), found)
    # benchmarks/matrix.py has the figure; here, what is quadratic takes minutes.
    assert time.process_time() - began < 30
    assert sum(len(job.cells) for job in found) == len(one.cells) > 7000
