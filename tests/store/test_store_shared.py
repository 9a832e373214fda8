"""A store of two users, and one in which somebody has put other things."""

import hashlib
import json
import multiprocessing
import os
import shutil
import time

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
    def task():
        assert store.prepare()
        with store.lock(key) as held:
            assert held
            return store.put(key, WHEEL, record={}, report={}).sha256

    return task


@needs_root
def test_two_users_of_a_group_share_a_store(place):
    store = shared(place, 0o2775)
    by(ME, put(store))
    assert by(OTHER, lambda: type(store.find(KEY))) is StoredWheel
    by(OTHER, put(store, "b" * 64))
    assert by(ME, lambda: type(store.find("b" * 64))) is StoredWheel

    def replace():
        with store.lock(KEY):
            store.put(KEY, WHEEL, record={}, report={})

    by(OTHER, replace)

    def use():
        with store.use(f"environment-{KEY}"):
            return True

    assert by(ME, use)
    assert by(OTHER, use)


@needs_root
def test_a_users_own_store_gives_another_what_it_has_and_takes_nothing(place):
    place.mkdir()
    os.chown(place, ME, GROUP)
    store = Store(place)
    by(ME, put(store))
    assert by(OTHER, lambda: (store.prepare(), type(store.find(KEY)))) == (False, StoredWheel)

    def hold():
        with store.lock(KEY) as held, store.use(KEY[:-1]):
            return held

    with pytest.raises(AssertionError, match="StoreError: cannot lock"):  # there is no such lock, and none can be made
        by(OTHER, hold)

    def take():
        with store.lock(KEY) as held:
            return held

    assert by(OTHER, take)


@needs_root
def test_nobody_believes_a_stranger_in_a_folder_of_everybody(place):
    store = shared(place, 0o1777)
    by(ME, put(store))
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
    by(ME, put(store))
    by(OTHER, put(store, "b" * 64))

    def collected():
        return [item.name for item in items.collect(store, now=time.time() + 10**6, max_age=1.0, max_size=None)]

    assert by(OTHER, collected) == ["b" * 64]
    assert by(ME, lambda: type(store.find(KEY))) is StoredWheel
    assert by(0, collected) == [KEY]


@needs_root
def test_a_lock_that_one_user_holds_holds_for_another(place):
    store = shared(place, 0o2775)
    by(ME, put(store))

    def held():
        with store.lock(KEY, wait=False) as mine:
            return mine

    with store.use(KEY):
        assert by(OTHER, held) is False
    assert by(OTHER, held) is True


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "store")
    made.prepare()
    made.put(KEY, WHEEL, record={"a": "b"}, report={})
    return made


def entry(store):
    return store.root / "wheels" / KEY


def replaced_by(make):
    def spoil(store):
        shutil.rmtree(entry(store))
        make(entry(store))

    return spoil


def with_entry(text):
    return lambda store: (entry(store) / "entry.json").write_text(text, encoding="utf-8")


def with_member(make, name=WHEEL[0]):
    def spoil(store):
        (entry(store) / name).unlink()
        make(entry(store) / name)

    return spoil


def named(name):
    digest = hashlib.sha256(WHEEL[1]).hexdigest()
    return with_entry(json.dumps({"wheel": name, "sha256": digest, "record": {}, "report": {}}))


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(with_entry("[" * 100_000), id="deep JSON"),
        pytest.param(with_entry("1"), id="a number"),
        pytest.param(with_entry("\udcff".encode("utf-8", "surrogatepass").decode("latin-1")), id="no JSON"),
        pytest.param(with_member(os.mkfifo), id="FIFO for the wheel"),
        pytest.param(with_member(os.mkfifo, "entry.json"), id="FIFO for the entry"),
        pytest.param(with_member(os.mkdir), id="folder for the wheel"),
        pytest.param(with_member(os.mkdir, "entry.json"), id="folder for the entry"),
        pytest.param(with_member(lambda path: path.symlink_to("/dev/zero")), id="link for the wheel"),
        pytest.param(replaced_by(lambda path: path.symlink_to("nowhere")), id="dangling link"),
        pytest.param(replaced_by(lambda path: path.symlink_to("/")), id="link to a folder"),
        pytest.param(replaced_by(lambda path: path.write_text("x")), id="file for the folder"),
        pytest.param(replaced_by(os.mkfifo), id="FIFO for the folder"),
        pytest.param(named("../../../etc/passwd"), id="a wheel elsewhere"),
        pytest.param(named("/etc/passwd"), id="a wheel at the root"),
        pytest.param(named(".."), id="a wheel above"),
        pytest.param(lambda store: entry(store).chmod(0o777), id="anybody may write"),
    ],
)
def test_what_is_in_the_place_of_an_entry_is_damaged_and_heals(store, spoil):
    spoil(store)
    assert isinstance(store.find(KEY), Damaged)
    assert store.prepare()
    with store.lock(KEY):
        store.put(KEY, WHEEL, record={}, report={})
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
