"""The caches of a run together: who is asked first, who may write, and that nothing fails."""

import threading
from unittest.mock import Mock, call

import pytest

from builder.compile_cache import Access
from builder.compile_cache.caches import CacheHit, Caches
from builder.compile_cache.folder import CacheError, DamagedError, Entry, Folder
from builder.compile_cache.session import Session

KEY = "ab" * 20
OBJECT = Entry(value=b"object", seconds=3.0, writer="another")
REFUSES = CacheError("connection refused", help="start it")


@pytest.fixture
def server():
    """Return a shared cache that keeps entries in a dictionary."""
    entries = {KEY: OBJECT}
    shared = Mock(entries=entries)
    shared.name = "redis://cache"
    shared.get.side_effect, shared.put.side_effect = entries.get, entries.__setitem__
    return shared


@pytest.fixture
def failing(server):
    """Return one that fails, and tells of each time that it is asked."""
    server.check.side_effect = server.get.side_effect = server.put.side_effect = REFUSES
    return server


def caches(tmp_path, **options):
    return Caches(local=Folder(root=tmp_path / "compiled"), writer="me", **options)


def test_the_store_is_asked_first_then_the_shared_cache_whose_entry_is_kept(tmp_path, server):
    found = caches(tmp_path, shared=server)
    assert found.get(KEY) == CacheHit(entry=OBJECT, cache="redis://cache")
    assert found.get(KEY) == CacheHit(entry=OBJECT, cache="store")
    assert len(server.method_calls) == 1


@pytest.mark.parametrize(
    ("access", "reads", "writes"),
    [(Access.READ, True, False), (Access.WRITE, False, True), (Access.READ_WRITE, True, True)],
)
def test_reading_and_writing_are_separate_rights(tmp_path, server, access, reads, writes):
    found = caches(tmp_path, shared=server, access=access)
    assert (found.get(KEY) is not None) is reads
    found.put("cd" * 20, OBJECT)
    found.close()
    assert ("cd" * 20 in server.entries) is writes
    assert found.local.get("cd" * 20) == OBJECT


def test_who_writes_alone_reads_not_even_the_store(tmp_path, server):
    found = caches(tmp_path, shared=server, access=Access.WRITE)
    found.put(KEY, OBJECT)
    assert found.get(KEY) is None


def test_a_server_that_fails_is_told_once_and_not_asked_again(tmp_path, failing):
    found = caches(tmp_path, shared=failing, access=Access.READ_WRITE)
    found.check()
    for _ in range(3):
        assert found.get(KEY) is None
        found.put(KEY, OBJECT)
        found.remove(KEY)
    found.close()
    assert len(failing.method_calls) == 1
    assert found.warnings() == ("the cache redis://cache is not used: connection refused\n  help: start it",)
    assert found.warnings() == ()


def test_a_server_is_looked_at_once_before_the_first_compilation(tmp_path, server):
    found = caches(tmp_path, shared=server, access=Access.WRITE)
    threads = [threading.Thread(target=found.check) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.method_calls == [call.check(write=True)]


def test_what_is_damaged_on_the_server_is_nothing_and_the_server_stays(tmp_path, server):
    server.get.side_effect = DamagedError("its value is not the one that was written")
    found = caches(tmp_path, shared=server)
    assert found.get(KEY) is None
    assert found.get(KEY) is None
    assert len(server.method_calls) == 2
    assert found.warnings() == ()


def test_a_store_that_takes_nothing_is_told_once(tmp_path):
    (tmp_path / "compiled").write_text("a file in its place")
    found = caches(tmp_path)
    found.put(KEY, OBJECT)
    found.put(KEY, OBJECT)
    (warning,) = found.warnings()
    assert "compiled files are not kept" in warning
    found.close()


def test_a_store_of_another_user_is_read_and_left_alone(tmp_path):
    caches(tmp_path).local.put(KEY, OBJECT)
    found = caches(tmp_path, writable=False)
    assert found.get(KEY) is not None
    found.remove(KEY)
    found.put("cd" * 20, OBJECT)
    assert found.local.get(KEY) is not None
    assert found.local.get("cd" * 20) is None


RESULT, LIST = b"\xcc\xac\x01\x00", b"\xcc\xac\x01\x01"
"""How ccache's values begin: what was compiled, and the list of what it depends on."""


def compiled(session, output, *, value):
    """Ask as ccache does for one object: what it depends on, then the object; compile where there is none."""
    client = session.client(("ccache", "c++", "-c", "a.cpp", "-o", output))
    if client.get("1" * 40) is None or client.get("2" * 40) is None:
        client.put("2" * 40, RESULT + value)
        client.put("1" * 40, LIST + b"what it depends on")
    client.close()


def test_a_session_knows_where_each_object_came_from(tmp_path):
    found = caches(tmp_path)
    for _ in range(2):
        session = Session(caches=found)
        compiled(session, "a.cpp.o", value=b"object")
        files = session.explain([{"output": name, "start": 0.0, "end": 1.0} for name in ("a.cpp.o", "b.so")])
    one, other = files
    assert (one["cache"], one["writer"]) == ("store", "me")
    assert one["saved"] >= 0
    assert other == {"output": "b.so", "start": 0.0, "end": 1.0}


def test_what_was_given_can_be_taken_back(tmp_path):
    found = caches(tmp_path)
    compiled(Session(caches=found), "a.cpp.o", value=b"wrong")
    session = Session(caches=found)
    assert session.forget() is False
    compiled(session, "a.cpp.o", value=b"right")
    assert session.forget() is True
    assert found.warnings() == ("objects of store could not be linked, so all were compiled here",)
    assert found.get("2" * 40) is None
