"""Whatever is said of systems is said of the same ones."""

import json

from builder import matrix, pins, resources, toml
from builder.ci.plan.jobs import runner_data
from builder.config.values import System
from builder.matrix import variant
from builder.matrix.variant import built_systems

BUILT = set(built_systems())


def test_cells_are_built_for_each_system_and_for_no_other():
    assert {row.system for row in matrix.rows()} == BUILT


def test_wheels_are_pinned_for_each_system_and_for_no_other():
    assert {system for part in pins.load().parts for system in part.wheels} == BUILT


def test_each_service_of_ci_has_a_runner_for_each_system():
    gitlab = runner_data()["gitlab"]
    assert set(runner_data()["runner"]) == set(gitlab["runner"]) == set(gitlab["image"]) == BUILT
    assert {one["system"] for one in runner_data()["container"]} <= BUILT


def test_each_system_has_a_name_that_configs_and_variants_can_have():
    assert {str(System(system)) for system in BUILT} <= set(variant.SYSTEMS)


def test_the_schema_of_the_matrix_allows_what_a_name_can_have():
    schema = json.loads((resources.DATA / "matrix.schema.json").read_text(encoding="utf-8"))
    assert schema["$defs"]["system"]["pattern"] == f"^{System.pattern.replace('(?:', '(')}$"


def test_the_data_file_is_a_table_for_each_system():
    text = (resources.DATA / "systems.toml").read_text(encoding="utf-8")
    assert all(set(given) - {"triple"} == {"platforms", "uv"} for given in toml.loads(text).values())


def test_a_wheel_runs_on_the_systems_of_its_tags():
    x86, arm = built_systems()["x86_64-linux"], built_systems()["aarch64-linux"]
    assert x86.runs("pathspec-1.1.1-py3-none-any.whl")
    assert x86.runs("nvidia_nvvm-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl")
    assert not x86.runs("ninja-1.13.2-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl")
    assert arm.runs("ninja-1.13.2-py3-none-manylinux2014_aarch64.manylinux_2_17_aarch64.whl")
