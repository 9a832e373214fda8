"""What a build reports, as this builder and older ones keep it."""

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.loadtest import SKIPPED, LoadState, LoadTest
from builder.make.build_report import BuildReport
from builder.make.ninja_log import File

LOADED = LoadTest(outcome=LoadState.LOADED, ops={"_a::b": ("CPU", "Meta")}, packages=("triton 3.7.1",))
WHOLE = BuildReport(
    load_test=LOADED,
    not_reproducible="a reason",
    plan={"archs": ["8.0"]},
    canonical_path=True,
    sandbox=False,
    peak_memory=300 << 20,
    compile_seconds=1.25,
    finish_seconds=0.5,
    files=(File(output="a.o", start=0.0, end=1.0),),
    warnings=("csrc/a.cpp:1:2: warning: #warning",),
    log="/log",
    derivation="/nix/store/x.drv",
    output="/nix/store/x",
)
KEPT = {
    "peak-memory": 314572800,
    "compile-seconds": 1.25,
    "finish-seconds": 0.5,
    "canonical-path": True,
    "sandbox": True,
    "not-reproducible": None,
    "files": [{"output": "a.o", "start": 0.0, "end": 1.0}],
    "ops": {"_a::b": ["CPU", "Meta"]},
    "load-test": LOADED.to_json(),
    "plan": None,
    "log": "/log",
}
"""The report of an entry in the store, as it has always been spelled."""


def test_every_field_comes_back_from_json():
    assert all(getattr(WHOLE, field.name) not in (None, SKIPPED) for field in fields(BuildReport))
    assert BuildReport.from_json(json.loads(json.dumps(WHOLE.to_json()))) == WHOLE


@given(
    st.builds(
        BuildReport,
        load_test=st.sampled_from([LOADED, SKIPPED]),
        not_reproducible=st.none() | st.text(),
        plan=st.none() | st.dictionaries(st.text(), st.text()),
        canonical_path=st.none() | st.booleans(),
        sandbox=st.none() | st.booleans(),
        peak_memory=st.none() | st.integers(),
        compile_seconds=st.none() | st.floats(allow_nan=False),
        finish_seconds=st.none() | st.floats(allow_nan=False),
        files=st.none() | st.just(()) | st.just(WHOLE.files),
        warnings=st.none() | st.just(WHOLE.warnings),
        log=st.none() | st.text(),
    )
)
def test_any_report_comes_back_from_json(report):
    assert BuildReport.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_the_fields_of_the_store_have_the_names_they_always_had():
    assert BuildReport.from_json(KEPT).to_json() == KEPT


def test_the_report_of_an_older_builder_is_read():
    assert BuildReport.from_json({"ops": {"_a::b": ["CPU"]}}).load_test.outcome is LoadState.LOADED
    assert BuildReport.from_json({}) == BuildReport()
    assert BuildReport.from_json({"load-test": LOADED.to_json()}).load_test == LOADED


def test_a_report_for_nix_has_nothing_that_differs_from_build_to_build():
    assert WHOLE.lasting().keys() == {"canonical-path", "load-test", "not-reproducible", "ops", "plan"}
    assert BuildReport().lasting() == {
        "load-test": SKIPPED.to_json(),
        "not-reproducible": None,
        "ops": None,
        "plan": None,
    }


@pytest.mark.parametrize(
    "table",
    [
        pytest.param([], id="no table"),
        pytest.param({"load-test": {}}, id="half a load test"),
        pytest.param({"load-test": {**LOADED.to_json(), "outcome": "splendid"}}, id="an unknown outcome"),
        pytest.param({"ops": 3}, id="ops that are none"),
        pytest.param({"files": ["a.o"]}, id="files without times"),
    ],
)
def test_what_is_no_report_is_no_traceback(table):
    with pytest.raises(ValueError, match=r"report|splendid"):
        BuildReport.from_json(table)
