"""A wheel is the same bytes whether CMake looked at the compilers or had the answers of an earlier build."""

import pytest

from builder.store import Store
from tests.given.kernels import PLAIN, PLAIN_CELL, linux

LOOKS = "The CXX compiler identification is"

pytestmark = [
    pytest.mark.cmake,
    linux,
]


@pytest.fixture
def again(build, tmp_path):
    """Build a kernel again, in a store whose notes no other test writes; return its digest, and what CMake said."""
    store = Store(tmp_path / "store")

    def run():
        result, _ = build(PLAIN, "--variant", PLAIN_CELL, "--rebuild", store=store.root)
        if not result["report"]["canonical-path"]:
            pytest.skip("no canonical path without user namespaces, and answers are kept there alone")
        log = store.log("plain", PLAIN_CELL).read_text(encoding="utf-8")
        return result["sha256"], log

    run.store = store
    return run


@pytest.mark.slow
def test_kept_answers_change_no_byte_and_wrong_ones_stop_no_build(again):
    first, _ = again()
    kept_digest, said = again()
    assert kept_digest == first
    assert LOOKS not in said
    (note,) = (path.stem for path in (again.store.root / "notes").glob("compilers-cpu-*.json"))
    kept = again.store.note(note)
    again.store.set_note(note, {**kept, "files": dict.fromkeys(kept["files"], 'message(FATAL_ERROR "not taken")\n')})
    without, said = again()
    assert without == first
    assert "not taken" in said
    assert LOOKS in said
    healed, said = again()
    assert healed == first
    assert LOOKS not in said
