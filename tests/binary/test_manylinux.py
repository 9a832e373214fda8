import json
from importlib.resources import files

import pytest

from builder.binary.elf_symbols import Symbol
from builder.binary.extension import Extension
from builder.binary.policies import loaders, lowest_policy, policies

RAW = [
    row
    for row in json.loads((files("auditwheel") / "policy" / "manylinux-policy.json").read_text())
    if row["name"] != "linux"
]
MACHINES = ("x86_64", "aarch64")


def versions(row, machine):
    table = row["symbol_versions"].get(machine, {})
    return {f"{kind}_{version}" for kind, found in table.items() for version in found}


@pytest.mark.parametrize("machine", MACHINES)
def test_there_are_the_policies_of_auditwheel(machine):
    assert [policy.name for policy in policies(machine)] == [
        row["name"] for row in RAW if machine in row["symbol_versions"]
    ]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("row", RAW, ids=lambda row: row["name"])
def test_a_policy_admits_the_versions_that_auditwheel_admits(row, machine):
    policy = next((policy for policy in policies(machine) if policy.name == row["name"]), None)
    if policy is None:
        assert machine not in row["symbol_versions"]
        return
    every = {version for other in RAW for version in versions(other, machine)}
    assert {version for version in every if policy.admits(version)} == versions(row, machine)


@pytest.mark.parametrize("row", RAW, ids=lambda row: row["name"])
def test_a_policy_has_the_libraries_of_auditwheel(row):
    for policy in policies("x86_64"):
        if policy.name == row["name"]:
            assert policy.libraries == set(row["lib_whitelist"])
            assert policy.private.get("libz.so.1", frozenset()) == set(row["blacklist"].get("libz.so.1", ()))


@pytest.mark.parametrize("version", ["GLIBC_PRIVATE", "GLIBC_2.99", "GLIBCXX_LDBL_3.4", "CXXABI_2.0", "GCC_99"])
def test_no_policy_admits(version):
    assert not any(policy.admits(version) for policy in policies("x86_64"))


@pytest.mark.parametrize("version", ["OMP_1.0", "libcudart.so.13", "VERS_1.0"])
def test_versions_of_other_libraries_are_theirs(version):
    assert policies("x86_64")[0].admits(version)


def library(*symbols, versions=()):
    undefined = tuple(
        Symbol(name=name, defined=False, binding="global", version=version, library="libc.so.6")
        for name, version in symbols
    )
    wanted = {version for _, version in symbols} | set(versions)
    return Extension(name="a.so", undefined=undefined, versions=tuple(("libc.so.6", name) for name in sorted(wanted)))


@pytest.mark.parametrize(
    ("extensions", "name", "offending"),
    [
        pytest.param((), "manylinux_2_5", (), id="nothing"),
        pytest.param((library(("f", "GLIBC_2.28")),), "manylinux_2_28", ("f@GLIBC_2.28",), id="2.28"),
        pytest.param((library(("f", "GLIBC_2.29")),), "manylinux_2_31", ("f@GLIBC_2.29",), id="between policies"),
        pytest.param(
            (library(("f", "GLIBC_2.14")), library(("g", "GLIBC_2.34"), ("h", "GLIBC_2.32"))),
            "manylinux_2_34",
            ("g@GLIBC_2.34", "h@GLIBC_2.32"),
            id="the highest of two",
        ),
        pytest.param(
            (library(versions=["GLIBC_ABI_DT_RELR"]),), "manylinux_2_36", ("GLIBC_ABI_DT_RELR",), id="no symbol has it"
        ),
        pytest.param((library(("f", "GLIBC_2.99")),), "linux", ("f@GLIBC_2.99",), id="newer than all"),
        pytest.param((library(("f", "GLIBC_PRIVATE")),), "linux", ("f@GLIBC_PRIVATE",), id="private"),
    ],
)
def test_the_lowest_policy(extensions, name, offending):
    lowest = lowest_policy(extensions, "x86_64")
    assert (lowest.name, lowest.offending) == (name, offending)


def test_the_contract_figures_of_2_28():
    policy = next(policy for policy in policies("x86_64") if policy.name == "manylinux_2_28")
    assert policy.figures["GLIBC"] == (2, 28)
    assert policy.figures["GLIBCXX"] == (3, 4, 24)
    assert policy.figures["CXXABI"] == (1, 3, 11)
    assert policy.figures["GCC"] == (7, 0, 0)
    assert policy.tag == "manylinux_2_28_x86_64"
    assert "ld-linux-x86-64.so.2" in loaders()
