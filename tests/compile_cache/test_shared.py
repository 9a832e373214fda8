"""Shared caches by their URLs: what is no cache is refused before anything is built."""

import pytest

from builder.compile_cache import shared
from builder.compile_cache.folder import CacheError, Folder
from builder.errors import BuilderError


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redsi://host", "did you mean 'redis'"),
        ("gopher://host", "there are file, redis, rediss, s3"),
        ("redis://", "no URL of a cache"),
        ("redis://host:notaport", "no URL of a cache"),
        ("redis://[::1", "no URL of a cache"),
        ("redis://host/notanumber", "no URL of Redis"),
        ("s3://", "no URL of a cache"),
        ("relative/folder", "no absolute path"),
        ("file:relative", "no absolute path"),
        ("", "no absolute path"),
    ],
)
def test_what_is_no_cache_is_refused_with_a_remedy(url, message):
    with pytest.raises(BuilderError) as caught:
        shared.at(url, environ={})
    assert message in str(caught.value)
    assert caught.value.help


@pytest.mark.parametrize("url", ["/a folder", "file:///a%20folder"])
def test_a_folder_is_named_by_its_path_or_by_a_url(url):
    found = shared.at(url, environ={})
    assert isinstance(found, Folder)
    assert found.name == "/a folder"


def test_a_password_is_never_shown():
    assert shared.at("redis://user:secret@host:6379/0", environ={}).name == "redis://host:6379/0"


@pytest.mark.parametrize("url", ["redis://user:secret@host:x", "redis://:secret@[x", "redis://:secret@host/x"])
def test_a_password_is_not_shown_with_a_wrong_url(url):
    with pytest.raises(BuilderError) as caught:
        shared.at(url, environ={})
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_says_so_in_a_line():
    found = shared.at("redis://127.0.0.1:1/0", environ={})
    with pytest.raises(CacheError, match="refused") as caught:
        found.check(write=False)
    assert "--no-cache" in caught.value.help


def test_a_bucket_that_is_not_there_says_so_in_a_line(monkeypatch):
    for name, value in {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
    }.items():
        monkeypatch.setenv(name, value)
    found = shared.at("s3://bucket/prefix", environ={"AWS_ENDPOINT_URL": "http://127.0.0.1:1"})
    with pytest.raises(CacheError) as caught:
        found.check(write=False)
    assert len(str(caught.value).splitlines()) == 2
