import pytest
from abi3info import DATAS, FUNCTIONS

from builder.audit import abi3
from tests.given.audits import library, subject


def test_the_table_is_that_of_abi3audit():
    theirs = {
        symbol.name: f"{entry.added.major}.{entry.added.minor}"
        for table in (FUNCTIONS, DATAS)
        for symbol, entry in table.items()
    }
    ours = {symbol: str(version) for symbol, version in abi3.stable_symbols().items()}
    # A release of either may know a newer CPython than the other.
    assert {symbol: ours[symbol] for symbol in theirs.keys() & ours.keys()} == {
        symbol: theirs[symbol] for symbol in theirs.keys() & ours.keys()
    }
    old = {symbol for symbol, version in theirs.items() if int(version.split(".")[1]) <= 14}
    assert old <= ours.keys()


@pytest.mark.parametrize(
    ("symbol", "tag", "why"),
    [
        pytest.param("_PyDict_NewPresized", "cp39-abi3-any", "not in the stable ABI", id="private"),
        pytest.param("PyUnicode_AsUTF8AndSize", "cp39-abi3-any", "since CPython 3.10", id="3.10 for 3.9"),
        pytest.param("PyType_GetName", "cp310-abi3-any", "since CPython 3.11", id="3.11 for 3.10"),
        pytest.param("PyType_GetName", "cp310.cp39-abi3-any", "later", id="the lowest of two tags"),
    ],
)
def test_a_symbol_outside_the_limited_api_is_found(symbol, tag, why):
    (finding,) = abi3.check(subject(library(undefined=(symbol, "PyModule_Create2")), tags=(tag,)))
    assert finding.symbol == symbol
    assert why in finding.why


@pytest.mark.parametrize(
    ("symbol", "tag"),
    [
        ("PyModule_Create2", "cp39-abi3-any"),
        ("_Py_NoneStruct", "cp39-abi3-any"),
        ("PyType_GetName", "cp311-abi3-any"),
        ("_ZN2Py3fooEv", "cp39-abi3-any"),
    ],
)
def test_other_symbols_are_not(symbol, tag):
    assert not list(abi3.check(subject(library(undefined=(symbol,)), tags=(tag,))))


def test_every_symbol_is_judged_whatever_the_one_before_it():
    names = ("memcpy", "PyInit_demo", "PyModule_Create2", "_PyDict_NewPresized", "PyType_GetName")
    found = abi3.check(subject(library(undefined=names)))
    assert [finding.symbol for finding in found] == ["_PyDict_NewPresized", "PyType_GetName"]
    names = ("_PyDict_NewPresized", "PyModule_Create2")
    without = abi3.check(subject(library(undefined=names), tags=("py3-none-any",)))
    assert [finding.symbol for finding in without] == ["_PyDict_NewPresized", "PyModule_Create2"]
