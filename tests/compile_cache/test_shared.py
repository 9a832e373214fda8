"""Shared caches by their URLs: what is no cache is refused before anything is built."""

import datetime as dt
import http.server
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

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


def bucket(monkeypatch, endpoint):
    """Return a cache in a bucket at an endpoint."""
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "a")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    return shared.at("s3://bucket/prefix", environ={"AWS_ENDPOINT_URL": endpoint})


def test_a_bucket_that_is_not_there_says_so_in_a_line(monkeypatch):
    with pytest.raises(CacheError, match="cannot connect to it") as caught:
        bucket(monkeypatch, "http://127.0.0.1:1").check(write=False)
    assert len(str(caught.value).splitlines()) == 2


@pytest.fixture
def stranger(tmp_path):
    """Give the port of a server whose certificate nobody knows."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.timezone.utc)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + dt.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("kind", ["redis", "s3"])
def test_a_certificate_that_does_not_verify_is_named(stranger, monkeypatch, kind):
    if kind == "redis":
        found = shared.at(f"rediss://localhost:{stranger}/0", environ={})
    else:
        found = bucket(monkeypatch, f"https://localhost:{stranger}")
    with pytest.raises(CacheError, match="certificate does not verify"):
        found.check(write=False)
