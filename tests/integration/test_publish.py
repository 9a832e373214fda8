"""Publication to services that run on this machine: a bucket by rclone, the hub by its own library."""

import base64
import hashlib
import http.server
import json
import re
import threading
from urllib.parse import unquote, urlsplit

import pytest

from builder.cli import run
from builder.matrix.variant import Variant
from tests import needs
from tests.integration import buckets
from tests.wheels import make

CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")


def tree(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def dist(tmp_path):
    folder = tmp_path / "dist"
    folder.mkdir()
    make(folder, "relu", CPU)
    return folder


@pytest.fixture
def bucket(monkeypatch):
    """Give an empty bucket of a real S3 API on this machine."""
    needs.program("rclone")
    with buckets.served(monkeypatch, "wheels") as client:
        yield client


def objects(client):
    pages = client.get_paginator("list_objects_v2").paginate(Bucket="wheels")
    keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
    return {key: client.get_object(Bucket="wheels", Key=key)["Body"].read() for key in keys}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_bucket_gets_the_site_keeps_what_it_has_and_grows(bucket, dist, tmp_path, capsys):
    site = tmp_path / "site"
    assert run(["index", str(dist), "--output", str(site)]) == 0
    assert run(["publish", str(site), "s3://wheels/k", "--dry-run"]) == 0
    assert objects(bucket) == {}
    assert run(["publish", str(site), "s3://wheels/k"]) == 0
    first = objects(bucket)
    assert first == {f"k/{path}": content for path, content in tree(site).items()}
    assert bucket.head_object(Bucket="wheels", Key="k/index.html")["ContentType"].startswith("text/html")

    make(dist, "relu", CUDA)
    assert run(["index", str(dist), "--output", str(site)]) == 0
    (new,) = (path.name for path in (site / "files").glob("*cu130*.whl"))
    bucket.put_object(Bucket="wheels", Key=f"k/files/{new}", Body=b"of somebody else")
    assert run(["publish", str(site), "s3://wheels/k"]) == 6
    assert "other files of the same name" in capsys.readouterr().err
    assert objects(bucket)[f"k/files/{new}"] == b"of somebody else"
    assert objects(bucket)["k/builder-index.json"] == first["k/builder-index.json"]

    bucket.delete_object(Bucket="wheels", Key=f"k/files/{new}")
    assert run(["publish", str(site), "s3://wheels/k"]) == 0
    assert objects(bucket) == {f"k/{path}": content for path, content in tree(site).items()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_bucket_that_is_not_there_is_said(bucket, dist, tmp_path, capsys):
    assert run(["index", str(dist), "--output", str(tmp_path / "site")]) == 0
    assert run(["publish", str(tmp_path / "site"), "s3://elsewhere/k"]) == 6
    assert "rclone could not publish" in capsys.readouterr().err
    assert objects(bucket) == {}


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub's API as one commit needs; a repository is a table of branches."""

    branches: dict
    commits: list
    broken: list

    def log_message(self, *_arguments):
        pass

    def reply(self, value, status=200, headers=()):
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(content)

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_GET(self):
        found = re.fullmatch(r"/api/kernels/team/relu/tree/([^/]+)", unquote(urlsplit(self.path).path))
        if found is None or found[1] not in self.branches:
            self.reply({"error": "absent"}, 404, [("X-Error-Code", "RevisionNotFound")])
            return
        files = self.branches[found[1]]
        self.reply(
            [
                {
                    "type": "file",
                    "path": path,
                    "size": len(content),
                    "oid": hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(),
                }
                for path, content in files.items()
            ]
        )

    def do_POST(self):
        path = unquote(urlsplit(self.path).path)
        body = self.body()
        if path == "/api/repos/create":
            self.reply({"url": f"http://{self.headers['Host']}/kernels/team/relu"})
        elif path == "/api/validate-yaml":
            self.reply({"errors": [], "warnings": []})
        elif found := re.fullmatch(r"/api/kernels/team/relu/branch/(.+)", path):
            self.branches.setdefault(found[1], {})
            self.reply({})
        elif "/preupload/" in path:
            files = json.loads(body)["files"]
            self.reply({"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]})
        elif found := re.fullmatch(r"/api/kernels/team/relu/commit/(.+)", path):
            self.commit(found[1], body)
        else:
            self.reply({"error": f"unknown {path}"}, 400)

    def commit(self, branch, body):
        if self.broken:
            self.reply({"error": self.broken.pop()}, 500)
            return
        files = self.branches[branch]
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            elif line["key"] == "deletedFile":
                del files[line["value"]["path"]]
        self.commits.append(branch)
        address = f"http://{self.headers['Host']}/kernels/team/relu/commit/{'0' * 40}"
        self.reply({"success": True, "commitOid": "0" * 40, "commitUrl": address, "hookOutput": ""})


@pytest.fixture
def hub(monkeypatch, tmp_path):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_TOKEN", "hf_not_a_token")
    handler = type("Handler", (Hub,), {"branches": {}, "commits": [], "broken": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        handler.address = f"http://127.0.0.1:{server.server_port}"
        yield handler
        server.shutdown()
        thread.join()


def lay_out(dist, build, *options):
    assert run(["bundle", *map(str, dist.glob("*.whl")), "--output", str(build), *options]) == 0
    return build


def on_hub(build):
    files = {f"build/{path}": content for path, content in tree(build).items() if path != "CARD.md"}
    return files | {"README.md": (build / "CARD.md").read_bytes()}


def test_the_hub_gets_one_commit_on_the_branch_of_the_version(hub, dist, tmp_path, capsys):
    build = lay_out(dist, tmp_path / "build")
    publish = ["publish", str(build), "hub:team/relu", "--endpoint-url", hub.address]
    assert run([*publish, "--dry-run"]) == 0
    assert f"would add build/{CPU}/metadata.json" in capsys.readouterr().out
    assert (hub.branches, hub.commits) == ({}, [])
    assert run(publish) == 0
    assert hub.branches == {"v1": on_hub(build)}
    assert run(publish) == 0
    assert "has all of it" in capsys.readouterr().out
    assert hub.commits == ["v1"]


def test_another_commit_of_the_kernel_changes_metadata_alone(hub, dist, tmp_path):
    publish = ["hub:team/relu", "--endpoint-url", hub.address]
    assert run(["publish", str(lay_out(dist, tmp_path / "one", "--commit", "a" * 40)), *publish]) == 0
    build = lay_out(dist, tmp_path / "two", "--commit", "b" * 40)
    assert run(["publish", str(build), *publish]) == 0
    assert hub.branches == {"v1": on_hub(build)}


def test_a_variant_with_other_files_is_replaced_only_when_asked(hub, dist, tmp_path, capsys):
    publish = ["hub:team/relu", "--endpoint-url", hub.address]
    one = lay_out(dist, tmp_path / "one")
    assert run(["publish", str(one), *publish]) == 0
    hub.branches["v1"][f"build/{CPU}/old.py"] = b"stale"
    hub.branches["v1"]["notes.txt"] = b"of the author"
    make(dist, "relu", CPU, content="answer = 43\n")
    two = lay_out(dist, tmp_path / "two")
    assert run(["publish", str(two), *publish]) == 6
    assert "--replace" in capsys.readouterr().err
    assert hub.commits == ["v1"]
    assert run(["publish", str(two), *publish, "--replace"]) == 0
    assert hub.branches["v1"] == on_hub(two) | {"notes.txt": b"of the author"}


def test_a_hub_that_refuses_is_said_and_the_next_run_goes_on(hub, dist, tmp_path, capsys):
    build = lay_out(dist, tmp_path / "build")
    publish = ["publish", str(build), "hub:team/relu", "--endpoint-url", hub.address]
    hub.broken.append("full")
    assert run(publish) == 6
    message = capsys.readouterr().err
    assert "the hub did not take 'team/relu'" in message
    assert "hf_not_a_token" not in message
    assert run(publish) == 0
    assert hub.branches == {"v1": on_hub(build)}


@pytest.mark.slow
def test_a_hub_that_cannot_be_reached_is_said(dist, tmp_path, capsys, monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    build = lay_out(dist, tmp_path / "build")
    assert run(["publish", str(build), "hub:team/relu", "--endpoint-url", "http://127.0.0.1:9", "--dry-run"]) == 6
    assert "the hub did not take" in capsys.readouterr().err
