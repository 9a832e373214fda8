"""The chooser of a kernel's page, and its matrix."""

import re

import pytest

from builder.matrix import rows
from builder.publish import index
from builder.publish.index import grid, people, words
from builder.publish.index.table import Table
from builder.wheel import kernel_wheel
from tests.wheels import read

STABLE = "torch-stable-abi210-cu130-x86_64-linux"
WITH_CU130 = sorted({row.torch for row in rows() if row.compute == "cu130"})
RELEASED = sorted({row.torch for row in rows() if row.set == "release"} & set(WITH_CU130))


def test_each_choice_has_one_answer_or_one_reason(tmp_path):
    wheels = read(
        tmp_path, STABLE, "torch213-cxx11-cpu-x86_64-linux", "torch212-metal-aarch64-darwin", "torch-rocm", "torch-npu"
    )
    found = people.chooser(Table.of(wheels))
    torches, computes, systems = ([option["value"] for option in axis["options"]] for axis in found["axes"][:3])
    for torch in torches:
        for compute in computes:
            for system in systems:
                answers = [
                    each
                    for each in found["answers"]
                    if torch in each["torches"] and (each["compute"], each["system"]) == (compute, system)
                ]
                lacks = [
                    each
                    for each in found["lacks"]
                    if torch in each["torches"] and each["compute"] == compute and system in each["systems"]
                ]
                assert len(answers) + len(lacks) == 1, (torch, compute, system)


def test_the_first_choice_is_a_released_torch_with_cuda(tmp_path):
    found = people.chooser(Table.of(read(tmp_path, STABLE, "torch-cpu")))
    assert {axis["name"]: each["value"] for axis in found["axes"] for each in axis["options"] if each["chosen"]} == {
        "torch": words.value(RELEASED[-1]),
        "compute": "cu130",
        "system": "x86_64-linux",
        "installer": "pip",
    }


def test_the_first_choice_has_an_answer_where_there_is_no_cuda(tmp_path):
    wheels = read(tmp_path, "torch212-cxx11-cpu-aarch64-linux", "torch213-metal-aarch64-darwin")
    found = people.chooser(Table.of(wheels))
    first = {axis["name"]: each["value"] for axis in found["axes"] for each in axis["options"] if each["chosen"]}
    assert any(
        first["torch"] in each["torches"] and (each["compute"], each["system"]) == (first["compute"], first["system"])
        for each in found["answers"]
    )


def test_one_answer_and_one_cell_span_the_torches_that_a_stable_wheel_serves(tmp_path):
    wheels = read(tmp_path, STABLE, "torch211-cxx11-cpu-x86_64-linux")
    (answer,) = (each for each in people.chooser(Table.of(wheels))["answers"] if each["compute"] == "cu130")
    assert answer["torches"] == list(map(words.value, WITH_CU130))
    (table,) = grid.grids(Table.of(wheels))
    (row,) = (row for row in table["rows"] if row["compute"] == "CUDA 13.0")
    assert [(cell["span"], len(cell["wheels"])) for cell in row["cells"]][:2] == [(1, 0), (len(WITH_CU130), 1)]
    assert {sum(cell["span"] for cell in row["cells"]) for row in table["rows"]} == {len(table["columns"])}


def test_a_wheel_of_one_torch_is_preferred_to_a_stable_one_as_an_installer_does(tmp_path):
    wheels = read(tmp_path, STABLE, "torch213-cxx11-cu130-x86_64-linux")
    found = {pick.wheels[0].variant.stable: pick.torches for pick in Table.of(wheels).picks}
    assert [str(torch) for torch in found[False]] == ["2.13"]
    assert found[True] == tuple(torch for torch in WITH_CU130 if torch not in found[False])


def test_an_older_version_is_taken_where_the_newest_was_not_built(tmp_path):
    read(tmp_path, "torch212-cxx11-cpu-x86_64-linux", version="1.0.0")
    read(tmp_path, "torch213-cxx11-cpu-x86_64-linux", version="1.1.0")
    found = people.chooser(Table.of(kernel_wheel.read_all(tmp_path.glob("*.whl"))))
    assert [(each["torches"], each["version"]) for each in found["answers"]] == [
        (["torch212"], "1.0.0"),
        (["torch213"], "1.1.0"),
    ]


def test_wheels_of_each_python_are_one_answer(tmp_path):
    names = [f"torch213-cxx11-cpu-x86_64-linux-cp3{minor}" for minor in (11, 12)]
    (answer,) = people.chooser(Table.of(read(tmp_path, *names)))["answers"]
    assert len(answer["wheels"]) == len(names)
    assert answer["hub"] is None


def test_a_gap_says_whether_a_wheel_could_be_built(tmp_path):
    wheels = read(tmp_path, "torch212-cxx11-cpu-x86_64-linux", "torch213-metal-aarch64-darwin")
    why = {
        (torch, each["compute"], system): each["why"]
        for each in people.chooser(Table.of(wheels))["lacks"]
        for torch in each["torches"]
        for system in each["systems"]
    }
    assert why["torch213", "cpu", "x86_64-linux"].endswith("it was not built.")
    assert why["torch213", "metal", "x86_64-linux"].endswith("no such PyTorch is known.")


@pytest.mark.parametrize(
    ("source", "hub"),
    [
        ("https://huggingface.co/kernels/some/relu", "some/relu"),
        ("https://huggingface.co/some/relu", "some/relu"),
        ("https://huggingface.co/some/relu'); import os", "OWNER/relu"),
        (None, "OWNER/relu"),
    ],
)
def test_the_client_is_given_the_repository_that_the_kernel_names(tmp_path, source, hub):
    (wheel,) = read(tmp_path, "torch-cpu")
    wheel.metadata.table["source"] = source
    assert {answer["hub"] for answer in people.chooser(Table.of([wheel]))["answers"]} == {hub}


def test_a_requirement_cannot_run_a_command_in_the_shell_it_is_pasted_into(tmp_path):
    (wheel,) = read(tmp_path, "torch-cpu", requires=["torch", 'einops; python_version > "$(id)`id`\u202e"'])
    answer = people.chooser(Table.of([wheel]))["answers"][0]
    assert answer["requires"] == ["""'einops; python_version > "$(id)`id`\\u202e"'"""]


def test_the_page_has_a_rule_for_each_value_that_can_be_chosen(tmp_path):
    site = index.build(read(tmp_path, STABLE, "torch-cpu"))
    style = site["style.css"].content.decode()
    for path in ("index.html", "kernels/relu/index.html"):
        for name, value in re.findall(r'type="radio" name="(\w+)" value="([^"]+)"', site[path].content.decode()):
            assert f'[name="{name}"][value="{value}"]:checked) [data-{name}]:not([data-{name}~="{value}"])' in style
