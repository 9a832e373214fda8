"""A bucket of a real S3 API on this machine."""

import contextlib
import urllib.request

import pytest


@contextlib.contextmanager
def served(monkeypatch, name):
    """Give a client of an empty bucket; the variables of AWS name its server to all who are started meanwhile."""
    moto = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    server = moto.ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    values = {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "DEFAULT_REGION": "us-east-1", "REGION": "us-east-1"}
    for key, value in {**values, "ENDPOINT_URL": endpoint}.items():
        monkeypatch.setenv(f"AWS_{key}", value)
    client = boto3.client("s3", endpoint_url=endpoint)
    client.create_bucket(Bucket=name)
    yield client
    client.close()
    # The service keeps its buckets for the whole process.
    urllib.request.urlopen(urllib.request.Request(f"{endpoint}/moto-api/reset", method="POST")).close()
    server.stop()
