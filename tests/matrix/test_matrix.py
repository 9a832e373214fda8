"""The rules of the build matrix, its counts, and the cases that Nix shares."""

from collections import Counter
from dataclasses import replace

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from builder import resources, toml
from builder.config import Backend, parse
from builder.config.text import Source
from builder.matrix import SETS, absent_components, decide, rows, select
from builder.matrix.rules import read
from builder.matrix.variant import Variant, compute_name
from tests.given.kernels import of_text
from tests.paths import TESTS

CASES = TESTS / "data" / "select"
LINUX, ARM, MAC = "x86_64-linux", "aarch64-linux", "aarch64-darwin"
RELEASE = tuple(row for row in rows() if row.set == "release")
KNOWN = tuple(row for row in rows() if row.set != "preview")
MATRIX = toml.loads((resources.DATA / "matrix.toml").read_text(encoding="utf-8"))


def kernel(backends, framework="[torch]", components=None, extra=""):
    general = f'[general]\nname = "case"\nversion = 1\nedition = 5\nlicense = "MIT"\nbackends = {list(backends)}\n'
    parts = "".join(
        f'[kernel.{backend}-part]\nbackend = "{backend}"\ndepends = []\nsrc = ["part.cpp"]\n'
        for backend in (backends if components is None else components)
    )
    return of_text(f"{general}{framework}\n{parts}{extra}").config


ALL = ("cpu", "cuda", "metal", "rocm", "xpu")
STABLE = '[torch]\nstable-abi = "2.10"'
TVM_FFI = '[tvm-ffi]\nsrc = ["binding.cpp"]'


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(kernel(ALL), (15, 10, 6), id="classic"),
        pytest.param(kernel(ALL, STABLE, ("cpu", "cuda", "rocm", "xpu")), (8, 4, 2), id="stable-abi"),
        pytest.param(kernel(("cpu", "cuda", "xpu"), TVM_FFI), (5, 4, 1), id="tvm-ffi"),
        pytest.param(kernel(("cpu", "cuda", "rocm", "xpu"), "[torch-noarch]", ()), (4, 2, 1), id="noarch"),
    ],
)
def test_every_row_gives_the_counts_of_the_format(config, expected):
    found = Counter(cell.system for cell in select(config, RELEASE, unbundled=True))
    assert (found[LINUX], found[ARM], found[MAC]) == expected


@pytest.mark.parametrize("framework", [STABLE, "[torch-noarch]"])
def test_a_newest_torch_whose_wheels_nobody_has_tested_leaves_the_shared_wheel_to_an_older_one(framework):
    parts = ("cpu",) if framework == STABLE else ()
    asked = [row for row in RELEASE if row.system == LINUX and row.backend is Backend.CPU]
    decisions = {str(one.row.torch): one for one in decide(kernel(("cpu",), framework, parts), asked)}
    assert {name for name, one in decisions.items() if one.cell is not None} == {"2.13"}
    assert decisions["2.15"].message.endswith(", since nobody has tested the wheels of torch 2.15")
    newest = [replace(row, tested=True) for row in asked]
    assert [str(cell.torch) for cell in select(kernel(("cpu",), framework, parts), newest)] == ["2.15"]
    alone = [row for row in asked if not row.tested]
    assert [str(cell.torch) for cell in select(kernel(("cpu",), framework, parts), alone)] == ["2.15"]


def test_a_release_lacks_the_rows_that_are_not_of_a_bundle():
    config = kernel((*ALL, "tpu"), "[torch-noarch]", ())
    whole, bundled = (select(config, RELEASE, unbundled=unbundled) for unbundled in (True, False))
    assert [cell.system for cell in whole].count(LINUX) == [cell.system for cell in bundled].count(LINUX) + 1


@pytest.mark.parametrize("path", sorted(CASES.glob("*.toml")), ids=lambda path: path.stem)
def test_a_shared_case_selects_what_it_expects(path):
    case = toml.loads(path.read_text(encoding="utf-8"))
    config = parse(Source(name=path.name, text=tomlkit.dumps(case["config"])))
    among = [row for row in rows() if row.set in case.get("sets", ["release"])]
    cells = select(config, among, unbundled=case.get("all", False))
    assert [cell.variant for cell in cells] == case["expected"]
    assert [cell.system for cell in cells] == case["systems"]
    assert [str(cell.torch) for cell in cells] == case["torch"]


def test_there_are_shared_cases_for_both_frameworks_and_every_table():
    text = "".join(path.read_text(encoding="utf-8") for path in CASES.glob("*.toml"))
    for table in ("config.torch]", "config.torch-noarch]", "config.tvm-ffi]", "config.matrix]", "config.general.cuda]"):
        assert table in text


def test_names_in_the_matrix_are_what_the_grammar_makes():
    for row in rows():
        if row.noarch:
            continue
        name = Variant.parse(row.variant)
        assert (name.version, name.backend, name.compute) == (row.torch, row.backend, row.compute)
        assert row.compute == compute_name(row.backend, row.toolkit)
        assert name.system == row.system
        if row.tvm_ffi is not None:
            ffi = Variant.parse(row.tvm_ffi_variant)
            assert (ffi.version, ffi.compute, ffi.system) == (row.tvm_ffi, row.compute, row.system)


def test_classic_names_in_the_matrix_are_unique():
    names = [row.variant for row in rows() if row.variant is not None]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("config", "row", "rule", "key"),
    [
        pytest.param(
            kernel(("cpu",)), "torch 2.13, cuda 13.0, x86_64-linux", "backend", "general.backends", id="backend"
        ),
        pytest.param(
            kernel(("tpu",), TVM_FFI, ()), "torch 2.11, tpu, x86_64-linux", "tvm-ffi", "tvm-ffi", id="tvm-ffi"
        ),
        pytest.param(
            kernel(("cuda",), "[general.cuda]\nminver = '13.0'\n[torch]"),
            "torch 2.13, cuda 12.6, x86_64-linux",
            "toolkit",
            "general.cuda.minver",
            id="cuda-minver",
        ),
        pytest.param(
            kernel(("cuda",), "[general.cuda]\nmaxver = '13.0'\n[torch]"),
            "torch 2.13, cuda 13.2, x86_64-linux",
            "toolkit",
            "general.cuda.maxver",
            id="cuda-maxver",
        ),
        pytest.param(
            kernel(("cpu",), "[torch]\nminver = '2.12'"),
            "torch 2.11, cpu, x86_64-linux",
            "torch",
            "torch.minver",
            id="torch-minver",
        ),
        pytest.param(
            kernel(("cpu",), "[torch]\nmaxver = '2.12'"),
            "torch 2.13, cpu, x86_64-linux",
            "torch",
            "torch.maxver",
            id="torch-maxver",
        ),
        pytest.param(
            kernel(("cpu",), "[torch]\nstable-abi = '2.12'"),
            "torch 2.11, cpu, x86_64-linux",
            "stable-abi",
            "torch.stable-abi",
            id="stable-abi",
        ),
        pytest.param(
            kernel(("cpu",), extra="[matrix]\nsystems = ['aarch64-linux']"),
            "torch 2.13, cpu, x86_64-linux",
            "systems",
            "matrix.systems",
            id="systems",
        ),
        pytest.param(
            kernel(("cpu",), extra="[matrix.cpu]\nsystems = ['aarch64-linux']"),
            "torch 2.13, cpu, x86_64-linux",
            "systems",
            "matrix.cpu.systems",
            id="systems-of-a-backend",
        ),
        pytest.param(
            kernel(("cuda",), extra="[matrix.cuda]\ntoolkits = ['13.0']"),
            "torch 2.13, cuda 12.6, x86_64-linux",
            "toolkits",
            "matrix.cuda.toolkits",
            id="toolkits",
        ),
        pytest.param(
            kernel(("cpu",), STABLE), "torch 2.12, cpu, x86_64-linux", "merged", "torch.stable-abi", id="merged-stable"
        ),
        pytest.param(
            kernel(("cpu",), "[torch-noarch]", ()),
            "torch 2.12, cpu, x86_64-linux",
            "merged",
            "general.backends",
            id="merged-noarch",
        ),
        pytest.param(
            kernel(("cuda",), TVM_FFI), "torch 2.12, cuda 13.2, x86_64-linux", "merged", "", id="merged-equal-names"
        ),
    ],
)
def test_a_row_without_a_cell_names_the_rule_the_key_and_a_remedy(config, row, rule, key):
    found = next(one for one in decide(config, KNOWN, unbundled=True) if str(one.row) == row)
    assert found.cell is None
    assert (found.rule, ".".join(found.key)) == (rule, key)
    assert found.remedy


def test_a_row_that_is_not_released_needs_all():
    (row,) = [row for row in KNOWN if str(row) == "torch 2.11, cpu, x86_64-linux"]
    (left_out,), (built,) = (decide(kernel(("cpu",)), [row], unbundled=unbundled) for unbundled in (False, True))
    assert left_out.rule == "bundle"
    assert built.cell.bundle is False


def test_a_row_that_is_there_twice_gives_one_cell():
    row = next(row for row in RELEASE if row.backend is Backend.CPU)
    decisions = decide(kernel(("cpu",)), [row, replace(row)], unbundled=True)
    assert [decision.rule for decision in decisions] == ["built", "merged"]


def test_the_newest_torch_tests_a_noarch_cell():
    cells = select(kernel(("cuda",), "[torch-noarch]", ()), RELEASE)
    assert {(cell.variant, str(cell.torch)) for cell in cells} == {("torch-cuda", "2.15")}


def test_a_component_below_its_cuda_minver_leaves_the_cell_but_not_the_plan():
    config = kernel(("cuda",), extra='cuda-minver = "13.0"')
    cells = select(config, RELEASE)
    assert {cell.toolkit: absent_components(config, cell) for cell in cells} == {
        "12.6": ("cuda-part",),
        "13.0": (),
        "13.2": (),
    }


# The five rules of the format again, as plainly as they can be said, on the raw rows.


def number(version):
    return tuple(int(part) for part in version.split(".")[:2])


def rank(row):
    return row.get("tested", True), number(row["torch"])


def expected_cells(asked, raw):
    kept, found = [], {}
    for row in raw:
        noarch = asked["framework"] == "torch-noarch" or row["backend"] not in asked["components"]
        stable = None if noarch or asked["framework"] != "torch" else asked["stable"].get(row["backend"])
        bounds = [("torch", asked["torch"])] if asked["framework"] == "torch" else []
        bounds += [("toolkit", asked["cuda"])] if row["backend"] == "cuda" else []
        rules = [
            row["backend"] in asked["backends"],
            row.get("bundle", True) or asked["all"],
            noarch or not row.get("noarch", False),
            asked["framework"] != "tvm-ffi" or "tvm-ffi" in row,
            all(number(least) <= number(row[key]) <= number(most) for key, (least, most) in bounds),
            stable is None or number(stable) <= number(row["torch"]),
        ]
        if not all(rules):
            continue
        if noarch:
            name, shared = f"torch-{row['backend']}", (row["backend"], row["system"])
        elif asked["framework"] == "tvm-ffi":
            name, shared = row["tvm-ffi-variant"], None
        elif stable is not None:
            name = f"torch-stable-abi{stable.replace('.', '')}-{row['compute']}-{row['system']}"
            shared = (row["backend"], row["system"], row.get("toolkit"))
        else:
            name, shared = row["variant"], None
        kept.append((row, name, shared))
    for row, name, shared in kept:
        rivals = [other for other, _, place in kept if place == shared] if shared else [row]
        if rank(row) == max(map(rank, rivals)):
            found.setdefault((name, row["system"]), row["torch"])
    return [(name, system, torch) for (name, system), torch in found.items()]


TORCHES = ("2.9", "2.11", "2.12", "2.13", "2.14", "2.15", "2.20")
TOOLKITS = ("11.8", "12.6", "13.0", "13.2", "14.0")
COMPILED = ("cpu", "cuda", "metal", "rocm", "xpu")


@st.composite
def wishes(draw):
    backends = draw(st.lists(st.sampled_from((*COMPILED, "tpu")), min_size=1, unique=True))
    framework = draw(st.sampled_from(("torch", "torch-noarch", "tvm-ffi")))
    compiled = [backend for backend in backends if backend in COMPILED and framework != "torch-noarch"]
    asked = {
        "backends": backends,
        "framework": framework,
        "components": draw(st.lists(st.sampled_from(compiled), unique=True)) if compiled else [],
        "stable": draw(st.dictionaries(st.sampled_from(backends), st.sampled_from(TORCHES))),
        "torch": (draw(st.sampled_from(TORCHES)), draw(st.sampled_from(TORCHES))),
        "cuda": (draw(st.sampled_from(TOOLKITS)), draw(st.sampled_from(TOOLKITS))),
        "all": draw(st.booleans()),
        "sets": draw(st.lists(st.sampled_from(SETS), min_size=1, unique=True)),
    }
    table = f"[{framework}]\n"
    if framework == "tvm-ffi":
        table += "src = []\n"
    if framework == "torch":
        table += 'minver = "{}"\nmaxver = "{}"\n[torch.stable-abi]\n'.format(*asked["torch"])
        table += "".join(f'{backend} = "{version}"\n' for backend, version in asked["stable"].items())
    cuda = '[general.cuda]\nminver = "{}"\nmaxver = "{}"\n'.format(*asked["cuda"])
    return asked | {"config": kernel(backends, cuda + table, asked["components"])}


@given(wishes())
def test_select_is_what_the_rules_say(asked):
    raw = [row for name in SETS if name in asked["sets"] for row in MATRIX[name]["cell"]]
    among = [row for row in rows() if row.set in asked["sets"]]
    cells = select(asked["config"], among, unbundled=asked["all"])
    assert [(cell.variant, cell.system, str(cell.torch)) for cell in cells] == expected_cells(asked, raw)


@given(wishes())
def test_every_row_has_one_decision_and_every_cell_a_valid_name(asked):
    config = asked["config"]
    decisions = decide(config, rows(), unbundled=asked["all"])
    assert [decision.row for decision in decisions] == list(rows())
    for decision in decisions:
        assert (decision.cell is not None) == (decision.rule == "built")
        assert decision.message
        if decision.cell is not None:
            assert str(Variant.parse(decision.cell.variant)) == decision.cell.variant
            assert decision.cell.name.backend is decision.cell.backend


@given(wishes())
def test_a_part_of_the_matrix_gives_that_part_of_the_cells(asked):
    config = asked["config"]
    whole = select(config, rows(), unbundled=asked["all"])
    for system in (LINUX, ARM, MAC):
        part = select(config, [row for row in rows() if row.system == system], unbundled=asked["all"])
        assert part == tuple(cell for cell in whole if cell.system == system)
    for backend in Backend:
        part = select(config, [row for row in rows() if row.backend is backend], unbundled=asked["all"])
        assert part == tuple(cell for cell in whole if cell.backend is backend)


def test_a_row_added_as_data_is_read():
    row = {
        "torch": "2.20",
        "backend": "cpu",
        "compute": "cpu",
        "system": LINUX,
        "variant": "torch220-cxx11-cpu-" + LINUX,
    }
    added = read(tomlkit.dumps({"release": {"cell": []}, "preview": {"cell": [row]}}))
    assert [cell.variant for cell in select(kernel(("cpu",)), added)] == ["torch220-cxx11-cpu-x86_64-linux"]
