"""Publication to services that run on this machine: a bucket by rclone, the hub by its own library."""

import json

import pytest

from builder.cli import run
from builder.matrix.variant import Variant
from tests import needs
from tests.given.files import tree
from tests.integration import buckets, hub_server
from tests.wheels import make

CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")


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


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with hub_server.served(monkeypatch, tmp_path / "home") as server:
        yield server


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


def test_a_pull_request_changes_no_branch_and_makes_no_repository(hub, dist, tmp_path, capsys):
    build = lay_out(dist, tmp_path / "build")
    publish = ["publish", str(build), "hub:team/relu", "--endpoint-url", hub.address, "--create-pr"]
    assert run(publish) == 6
    assert "has no branch v1: a pull request needs one" in capsys.readouterr().err
    assert (hub.branches, hub.created) == ({}, [])
    hub.branches["v1"] = {"notes.txt": b"of the author"}
    assert run([*publish, "--dry-run"]) == 0
    assert "would make a pull request to branch v1" in capsys.readouterr().out
    assert hub.proposals == []
    assert run([*publish, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["status"], said["url"]) == ("proposed", f"{hub.address}/kernels/team/relu/discussions/1")
    assert hub.branches == {"v1": {"notes.txt": b"of the author"}}
    assert hub.proposals == [on_hub(build) | {"notes.txt": b"of the author"}]


def test_a_private_repository_is_made_so_and_one_that_everybody_sees_is_refused(hub, dist, tmp_path, capsys):
    build = lay_out(dist, tmp_path / "build")
    publish = ["publish", str(build), "hub:team/relu", "--endpoint-url", hub.address]
    assert run([*publish, "--private", "--dry-run"]) == 0
    assert hub.created == []
    assert run([*publish, "--private"]) == 0
    assert "private" in (*hub.created[0], hub.created[0].get("visibility"))  # by the version of the library
    capsys.readouterr()
    assert run([*publish, "--private"]) == 6
    assert "everybody can see it" in capsys.readouterr().err
    hub.private = True
    assert run([*publish, "--private"]) == 0
    assert run(publish) == 0
    assert run([*publish, "--private", "--create-pr"]) == 2


def test_what_was_published_is_one_document(hub, dist, tmp_path, capsys):
    build = lay_out(dist, tmp_path / "build")
    publish = ["publish", str(build), "hub:team/relu", "--endpoint-url", hub.address, "--json"]
    capsys.readouterr()
    statuses = []
    for more in (["--dry-run"], [], []):
        assert run([*publish, *more]) == 0
        said = json.loads(capsys.readouterr().out)
        statuses.append((said["status"], len(said["add"]), said["url"] is not None))
        assert (said["target"], said["branch"], said["delete"]) == ("hub:team/relu", "v1", [])
    files = len(on_hub(build))
    assert statuses == [("planned", files, False), ("published", files, True), ("unchanged", 0, False)]
