"""What the store has of a cell, as a build and `builder why` see it."""

from builder.make.report import BuildReport
from builder.plan import dry_run
from builder.store import Damaged, StoredWheel

KEY = "a" * 64
WHEEL = ("relu-1.0.0-py3-none-any.whl", b"content of a wheel")


def test_an_entry_with_its_report_is_a_hit(store):
    store.put(KEY, WHEEL, record={}, report=BuildReport(sandbox=True).to_json())
    assert isinstance(dry_run.find(store, KEY), StoredWheel)


def test_an_entry_whose_report_cannot_be_read_is_built_again(store):
    store.put(KEY, WHEEL, record={}, report={"load-test": {}})
    found = dry_run.find(store, KEY)
    assert isinstance(found, Damaged)
    assert "its report cannot be read" in found.why


def test_what_is_not_there_is_none(store):
    assert dry_run.find(store, KEY) is None
