"""What the store has of a cell, as a build and `builder why` see it."""

from builder import kernel
from builder.make.build_report import BuildReport
from builder.plan import choosing, dry_run
from builder.plan.ask import Ask
from builder.store import Damaged, Store, StoredWheel
from tests.given.kernels import TINY

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


def test_a_dry_run_makes_no_store(tmp_path):
    ask = Ask(store=Store(tmp_path / "store"), environ={"PATH": "/usr/bin:/bin"})
    build = choosing.build_of(kernel.load(TINY), ask)
    plans = dry_run.preview(build)
    assert [plan.cell for plan in plans] == list(build.cells)
    assert {plan.action for plan in plans} <= {"build", "skip"}
    assert not (tmp_path / "store").exists()
