"""The wheels of what [wheel] requires: chosen once, and without what the environment of the build has."""

import os
import shutil
import sys

import pytest
from packaging.tags import sys_tags

from builder.environment import resolve
from builder.errors import ToolError
from builder.pins import PinnedWheel, PinSet
from builder.run import Processes
from builder.store import Store
from tests.wheels import simple

BASE = PinSet(
    "cp311", "x86_64-linux", (PinnedWheel(file="torch-2.13.0-x.whl", name="torch", version="2.13.0", sha256=""),)
)


@pytest.fixture
def ask(tmp_path):
    """Return the wheels of requirements, from a folder in place of an index."""
    store, folder = Store(tmp_path / "store"), tmp_path / "index"
    store.prepare()
    folder.mkdir()
    env = {"PATH": os.defpath, "HOME": str(tmp_path), "UV_OFFLINE": "1", "UV_FIND_LINKS": str(folder)}

    def run(*requires, base=BASE):
        return resolve.wheels_of(requires, base=base, store=store, env=env, processes=Processes())

    run.folder = folder
    return run


def test_what_is_required_comes_with_what_it_needs_and_its_hashes(ask):
    deep = simple(ask.folder, "deep", "1.0").sha256
    wide = simple(ask.folder, "wide", "2.1", requires=["deep>=1"]).sha256
    simple(ask.folder, "wide", "3.0")
    found = {wheel.name: (wheel.version, wheel.sha256) for wheel in ask("wide<3")}
    assert found == {"deep": ("1.0", deep), "wide": ("2.1", wide)}


def test_what_the_build_has_is_taken_as_it_is_with_all_that_it_needs(ask):
    simple(ask.folder, "wide", "2.1", requires=["torch>=99"])
    assert [wheel.name for wheel in ask("wide")] == ["wide"]


def test_it_is_chosen_once_and_the_store_remembers_it(ask):
    simple(ask.folder, "wide", "2.1")
    first = ask("wide")
    simple(ask.folder, "wide", "2.2")
    assert ask("wide") == first
    assert ask("wide>2")[0].version == "2.2"
    shutil.rmtree(ask.folder)
    assert ask("wide") == first


def test_nothing_required_asks_nobody(ask):
    shutil.rmtree(ask.folder)
    assert ask() == ()


def test_a_package_that_no_index_has_is_said_with_the_key(ask):
    with pytest.raises(ToolError) as raised:
        ask("no-such-package")
    assert "no-such-package" in raised.value.message
    assert "'requires' in [wheel]" in raised.value.help


@pytest.mark.skipif(sys.platform != "linux", reason="tags of glibc")
def test_this_machine_decides_which_wheels_fit_it(ask):
    """A load test runs here: a wheel that needs a newer glibc than pinned ones may be installed."""
    newest = next(tag.platform for tag in sys_tags() if tag.platform.startswith("manylinux_2_"))
    simple(ask.folder, "wide", "2.1", tag=f"py3-none-{newest}")
    simple(ask.folder, "wide", "2.2", tag="py3-none-manylinux_2_99_x86_64")
    assert [wheel.version for wheel in ask("wide")] == ["2.1"]
