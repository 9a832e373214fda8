"""A store of two users, and one in which somebody has put other things."""

import hashlib
import json
import multiprocessing
import os
import shutil
import time
from contextlib import ExitStack

import pytest

from builder.store import Damaged, Store, StoredWheel, StoreError, items

ME, OTHER, GROUP = 54321, 54322, 54320
WHEEL = ("relu-1.0.0-py3-none-any.whl", b"content")
KEY = "a" * 64

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")


def _child(connection, uid, task):
    os.setgroups([GROUP])
    os.setgid(GROUP)
    os.setuid(uid)
    os.umask(0o022)
    try:
        connection.send((True, task()))
    except BaseException as error:  # noqa: BLE001  the parent raises it
        connection.send((False, f"{type(error).__name__}: {error}"))


def by(uid, task):
    """Do something as another user, and return what it gives."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_child, args=(theirs, uid, task))
    process.start()
    assert ours.poll(60)
    good, result = ours.recv()
    process.join()
    if not good:
        raise AssertionError(result)
    return result


@pytest.fixture
def place(tmp_path):
    """A folder that every user can reach."""
    above = tmp_path
    while above != above.parent and above.stat().st_uid == 0 and not above.stat().st_mode & 0o001:
        above.chmod(above.stat().st_mode | 0o011)
        above = above.parent
    return tmp_path / "store"


def shared(place, mode):
    place.mkdir()
    os.chown(place, 0, GROUP)
    place.chmod(mode)
    return Store(place)


def put(store, key=KEY):
    assert store.prepare()
    with store.lock(key) as held:
        assert held
        return store.put(key, WHEEL, record={}, report={}).sha256


def enter(context):
    """Enter a context, which is left when the process ends."""
    return ExitStack().enter_context(context)


@needs_root
def test_two_users_of_a_group_share_a_store(place):
    store = shared(place, 0o2775)
    by(ME, lambda: put(store))
    assert by(OTHER, lambda: type(store.find(KEY))) is StoredWheel
    by(OTHER, lambda: put(store, "b" * 64))
    assert by(ME, lambda: type(store.find("b" * 64))) is StoredWheel
    by(OTHER, lambda: put(store))
    for user in (ME, OTHER):
        by(user, lambda: enter(store.use(f"environment-{KEY}")))


@needs_root
def test_a_users_own_store_gives_another_what_it_has_and_takes_nothing(place):
    place.mkdir()
    os.chown(place, ME, GROUP)
    store = Store(place)
    by(ME, lambda: put(store))
    assert by(OTHER, lambda: (store.prepare(), type(store.find(KEY)))) == (False, StoredWheel)
    with pytest.raises(AssertionError, match="StoreError: cannot lock"):  # there is no such lock, and none can be made
        by(OTHER, lambda: enter(store.use(KEY[:-1])))
    assert by(OTHER, lambda: enter(store.lock(KEY)))


@needs_root
def test_nobody_believes_a_stranger_in_a_folder_of_everybody(place):
    store = shared(place, 0o1777)
    by(ME, lambda: put(store))
    found = by(OTHER, lambda: store.find(KEY))
    assert isinstance(found, Damaged)
    assert str(ME) in found.why
    assert by(ME, lambda: type(store.find(KEY))) is StoredWheel


@needs_root
def test_nobody_believes_the_note_of_a_stranger_either(place):
    store = shared(place, 0o1777)
    by(ME, lambda: (store.prepare(), store.set_note("n", {"a": 1}))[0])
    assert by(ME, lambda: store.note("n")) == {"a": 1}
    assert by(OTHER, lambda: store.note("n")) is None


@needs_root
def test_gc_leaves_what_another_user_has_made(place):
    store = shared(place, 0o2775)
    by(ME, lambda: put(store))
    by(OTHER, lambda: put(store, "b" * 64))

    for user, gone in ((OTHER, "b" * 64), (0, KEY)):
        found = by(user, lambda: items.collect(store, now=time.time() + 10**6, max_age=1.0, max_size=None))
        assert [item.name for item in found] == [gone]
        assert by(ME, lambda: type(store.find(KEY))) is (StoredWheel if user == OTHER else type(None))


@needs_root
def test_a_lock_that_one_user_holds_holds_for_another(place):
    store = shared(place, 0o2775)
    by(ME, lambda: put(store))

    with store.use(KEY):
        assert by(OTHER, lambda: enter(store.lock(KEY, wait=False))) is False
    assert by(OTHER, lambda: enter(store.lock(KEY, wait=False))) is True


@pytest.fixture
def store(store):
    store.put(KEY, WHEEL, record={"a": "b"}, report={})
    return store


def writing(text):
    return lambda path: path.write_text(text, encoding="utf-8")


def linked(target):
    return lambda path: path.symlink_to(target)


ENTRY = {"wheel": WHEEL[0], "sha256": hashlib.sha256(WHEEL[1]).hexdigest(), "record": {}, "report": {}}


@pytest.mark.parametrize(
    ("member", "make"),
    [
        pytest.param("entry.json", writing("[" * 100_000), id="deep JSON"),
        pytest.param("entry.json", writing("1"), id="a number"),
        pytest.param("entry.json", writing("\u00ed\u00b3\u00bf"), id="no JSON"),
        pytest.param(WHEEL[0], os.mkfifo, id="FIFO for the wheel"),
        pytest.param("entry.json", os.mkfifo, id="FIFO for the entry"),
        pytest.param(WHEEL[0], os.mkdir, id="folder for the wheel"),
        pytest.param("entry.json", os.mkdir, id="folder for the entry"),
        pytest.param(WHEEL[0], linked("/dev/zero"), id="link for the wheel"),
        pytest.param("", linked("nowhere"), id="dangling link"),
        pytest.param("", linked("/"), id="link to a folder"),
        pytest.param("", writing("x"), id="file for the folder"),
        pytest.param("", os.mkfifo, id="FIFO for the folder"),
        *(
            pytest.param("entry.json", writing(json.dumps({**ENTRY, "wheel": name})), id=f"the wheel {name}")
            for name in ("../../../etc/passwd", "/etc/passwd", "..")
        ),
    ],
)
def test_what_is_in_the_place_of_an_entry_is_damaged_and_heals(store, member, make):
    path = store.root / "wheels" / KEY / member
    path.unlink() if member else shutil.rmtree(path)
    make(path)
    assert isinstance(store.find(KEY), Damaged)
    put(store)
    assert isinstance(store.find(KEY), StoredWheel)


def test_an_entry_that_anybody_may_change_is_damaged_and_heals(store):
    (store.root / "wheels" / KEY).chmod(0o777)
    assert isinstance(store.find(KEY), Damaged)
    put(store)
    assert isinstance(store.find(KEY), StoredWheel)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.write_text("[" * 100_000)])
def test_what_is_in_the_place_of_a_note_is_forgotten(store, make):
    for folder in ("notes", "last"):
        make(store.root / folder / "x-y.json")
    make(store.root / "last" / "x-y.peak")
    assert (store.note("x-y"), store.last("x", "y"), store.measured("x", "y", "peak")) == (None, None, None)


def test_a_name_that_is_no_key_is_swept(store):
    for name in (".-x", ".", "..x", ".a b-x"):
        (store.root / "wheels" / name).mkdir(exist_ok=True)
    assert store.prepare()
    assert not (store.root / "wheels" / ".-x").exists()


def test_nothing_is_used_without_its_lock(store):
    (store.root / "locks" / "environment-x").mkdir()
    with pytest.raises(StoreError, match="cannot lock"), store.use("environment-x"):
        pass
