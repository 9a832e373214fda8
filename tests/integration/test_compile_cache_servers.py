"""Caches that several machines share, on real servers: Redis, and the API of S3."""

import socket
import subprocess
import time

import pytest

from tests import needs
from tests.integration import buckets
from tests.integration.test_compile_cache import (
    OTHER,
    SOURCE,
    Machine,
    pytestmark,
)

pytestmark = [*pytestmark, pytest.mark.slow]


class Redis:
    """A server of its own, which can be told to refuse and to end."""

    def __init__(self, folder):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        folder.mkdir()
        command = [needs.program("redis-server"), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self.process = subprocess.Popen([*command, "--dir", folder], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and not self.answers():
            time.sleep(0.05)

    def answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def url(self, user=""):
        return f"redis://{user}127.0.0.1:{self.port}/0"

    @property
    def name(self):
        return self.url()

    def tell(self, *words):
        return pytest.importorskip("redis").Redis(port=self.port).execute_command(*words)

    def end(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def redis(tmp_path):
    pytest.importorskip("redis")
    server = Redis(tmp_path / "redis")
    yield server
    server.end()


@pytest.fixture
def bucket(monkeypatch):
    """Give the URL of an empty bucket of a real S3 API on this machine."""
    pytest.importorskip("obstore")
    with buckets.served(monkeypatch, "objects"):
        yield "s3://objects/team"


@pytest.fixture
def machines(tmp_path):
    return [Machine(tmp_path / name) for name in ("one", "two", "three")]


def test_what_one_machine_compiled_another_one_takes_from_redis(machines, headed, redis):
    one, two, _ = machines
    first = one.build(headed, "--cache", redis.url(), "--cache-access", "read-write")
    assert first.compiled == {OTHER, SOURCE}
    second = two.build(headed, "--cache", redis.url())
    assert second.cached == {OTHER: redis.name, SOURCE: redis.name}
    assert f"of {redis.name}, which saved" in second.said
    assert second.sha256 == first.sha256


def test_what_one_machine_compiled_another_one_takes_from_a_bucket(machines, headed, bucket):
    one, two, _ = machines
    first = one.build(headed, "--cache", bucket, "--cache-access", "read-write")
    second = two.build(headed, "--cache", bucket)
    assert second.cached == {OTHER: bucket, SOURCE: bucket}
    assert second.sha256 == first.sha256


def test_rights_and_passwords_are_those_of_the_server(machines, headed, redis):
    one, two, three = machines
    redis.tell("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+get", "+client", "+hello", "+select")
    redis.tell("ACL", "SETUSER", "default", "off")
    refused = one.build(headed, "--cache", redis.url("reader:wrong@"))
    assert "is not used: wrong credentials" in refused.said
    reader = two.build(headed, "--cache", redis.url("reader:secret@"))
    assert reader.notes == []
    writer = three.build(headed, "--cache", redis.url("reader:secret@"), "--cache-access", "read-write")
    assert "it takes no entries" in writer.said
    assert "--cache-access read" in writer.said
    assert all("secret" not in build.said for build in (refused, reader, writer))
    assert refused.sha256 == reader.sha256 == writer.sha256


def test_a_bucket_that_is_not_there_is_named(machines, headed, bucket):
    built = machines[0].build(headed, "--cache", bucket.replace("objects", "nobodys"), "--cache-access", "read-write")
    assert "there is no such bucket" in built.said


def test_a_server_that_ends_in_the_middle_and_one_that_never_answers_fail_nothing(machines, headed, redis):
    one, two, three = machines
    first = one.build(headed, "--cache", redis.url(), "--cache-access", "read-write")
    redis.end()
    gone = two.build(headed, "--cache", redis.url())
    assert f"note: the cache {redis.name} is not used: " in gone.said
    with socket.socket() as silent:  # takes connections, and says nothing
        silent.bind(("127.0.0.1", redis.port))
        silent.listen()
        began = time.monotonic()
        slow = three.build(headed, "--cache", redis.url())
        assert time.monotonic() - began < 120
    assert "imeout" in slow.said
    assert first.sha256 == gone.sha256 == slow.sha256
