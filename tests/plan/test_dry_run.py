"""What the store has of a cell, as a build and `builder why` see it."""

from dataclasses import replace

import pytest

from builder import codec, kernel, matrix
from builder.make.build_report import BuildReport
from builder.make.record import BuildRecord
from builder.plan import choosing, dry_run
from builder.plan.ask import Ask, KernelBuild
from builder.store import Damaged, Store, StoredWheel
from builder.wheel.options import BuildOptions
from tests.given import planning
from tests.given.kernels import PLAIN, TINY, copied

CELL = "ctypes-cpu-x86_64-linux"
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


RECORD = BuildRecord(
    builder="1", variant=CELL, wheel={}, project={}, framework={}, pins="a", toolchain={}, environment={}
)


def planned(folder):
    """Return a planner of a kernel without isolation, and its cell for the CPU."""
    planner = planning.planner(PLAIN, folder, isolation=False)
    (cell,) = (each for each in matrix.select(planner.kernel.config, matrix.rows()) if each.variant == CELL)
    return planner, cell


def test_what_the_store_has_differs_in_nothing_whatever_was_built_last(tmp_path):
    planner, cell = planned(tmp_path)
    ask, record = planner.ask, planner.record(planner.spec(cell))
    ask.store.put(record.key, WHEEL, record=codec.encode(record), report=BuildReport().to_json())
    ask.store.set_last(dry_run.alike(planner.kernel, ask), CELL, key=KEY, record=codec.encode(RECORD))
    (found,) = dry_run.preview(KernelBuild(kernel=planner.kernel, cells=(cell,), ask=ask))
    assert (found.action, found.reason, found.changes) == ("hit", "nothing changed", ())


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        pytest.param({}, "changed: pins", id="the same kind"),
        pytest.param({"isolation": True}, "first build of this cell", id="against pinned wheels"),
        pytest.param({"options": BuildOptions(only=("9.0",))}, "first build of this cell", id="a quick build"),
    ],
)
def test_a_build_is_compared_with_the_last_one_of_its_kind(tmp_path, other, reason):
    planner, cell = planned(tmp_path)
    ask = planner.ask
    last = codec.encode(replace(RECORD, pins="b"))
    ask.store.set_last(dry_run.alike(planner.kernel, replace(ask, **other)), CELL, key=KEY, record=last)
    assert dry_run.why(planner.kernel, ask, cell, record=RECORD, found=None) == reason


def test_two_folders_of_one_kernel_are_not_compared(tmp_path):
    first, second = (kernel.load(copied(PLAIN, tmp_path / name)) for name in ("a", "b"))
    ask = planning.planner(PLAIN, tmp_path).ask
    assert dry_run.alike(first, ask) != dry_run.alike(second, ask)
    assert dry_run.alike(first, ask) == dry_run.alike(kernel.load(first.root), ask)
