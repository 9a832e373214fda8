import json

import pytest

from builder.cli import run
from builder.matrix.variant import Variant
from builder.publish import site
from tests.given.files import tree
from tests.wheels import make

CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
CUDA = Variant.parse("torch213-cxx11-cu130-x86_64-linux")


@pytest.fixture
def made(dist, indexed):
    make(dist, "relu", CPU)
    return indexed()


def test_a_directory_gets_the_whole_site_and_a_second_run_changes_nothing(made, tmp_path, capsys):
    target = tmp_path / "www"
    assert run(["publish", str(made), str(target)]) == 0
    assert ": 1 new wheel, " in capsys.readouterr().out
    assert tree(target) == tree(made)
    times = {path: path.stat().st_mtime_ns for path in target.rglob("*")}
    assert run(["publish", str(made), str(target)]) == 0
    assert times == {path: path.stat().st_mtime_ns for path in target.rglob("*")}
    assert "0 new wheels" in capsys.readouterr().out


def test_a_dry_run_names_the_wheels_and_writes_nothing(made, tmp_path, capsys):
    assert run(["publish", str(made), str(tmp_path / "www"), "--dry-run"]) == 0
    assert "would add relu-1.0.0" in capsys.readouterr().out
    assert not (tmp_path / "www").exists()


def test_new_wheels_are_added_to_those_that_are_there(dist, made, tmp_path):
    target = tmp_path / "www"
    assert run(["publish", str(made), str(target)]) == 0
    make(dist, "relu", CUDA)
    assert run(["index", str(dist), "--output", str(made)]) == 0
    assert run(["publish", str(made), str(target)]) == 0
    assert len(json.loads((target / "builder-index.json").read_text())["files"]) == 2
    assert tree(target) == tree(made)


def test_another_file_of_the_same_name_is_refused_and_stays(dist, made, tmp_path, capsys):
    target = tmp_path / "www"
    assert run(["publish", str(made), str(target)]) == 0
    before = tree(target)
    make(dist, "relu", CPU, content="answer = 43\n")
    assert run(["index", str(dist), "--output", str(tmp_path / "other")]) == 0
    assert run(["publish", str(tmp_path / "other"), str(target)]) == 6
    assert "--wheel-version" in capsys.readouterr().err
    assert tree(target) == before


def test_another_file_that_no_manifest_lists_is_refused_and_stays(made, tmp_path, capsys):
    target = tmp_path / "www"
    (wheel,) = (made / "files").glob("*.whl")
    (target / "files").mkdir(parents=True)
    (target / "files" / wheel.name).write_bytes(b"of somebody else")
    assert run(["publish", str(made), str(target)]) == 6
    assert wheel.name in capsys.readouterr().err
    assert tree(target) == {f"files/{wheel.name}": b"of somebody else"}


def test_wheels_that_only_the_target_has_are_not_dropped(dist, made, tmp_path, capsys):
    target = tmp_path / "www"
    assert run(["publish", str(made), str(target)]) == 0
    next(dist.glob("*.whl")).unlink()
    make(dist, "relu", CUDA)
    assert run(["index", str(dist), "--output", str(tmp_path / "other")]) == 0
    assert run(["publish", str(tmp_path / "other"), str(target)]) == 6
    assert "wheels that this site lacks" in capsys.readouterr().err
    assert tree(target) == tree(made)


def test_what_broke_off_is_taken_up_and_no_page_came_before_its_wheel(dist, made, tmp_path):
    make(dist, "relu", CUDA)
    assert run(["index", str(dist), "--output", str(made)]) == 0
    target = Breaking(tmp_path / "www")
    todo = site.plan(made, target)
    with pytest.raises(ConnectionError):
        site.publish(made, target, todo)
    assert not [path for path in tree(tmp_path / "www") if path.endswith(".html")]
    assert run(["publish", str(made), str(tmp_path / "www")]) == 0
    assert tree(tmp_path / "www") == tree(made)


class Breaking(site.Directory):
    """A directory that takes two files and then fails."""

    def send(self, root, paths, *, fixed):
        super().send(root, paths[:2], fixed=fixed)
        raise ConnectionError


def test_a_site_that_is_not_whole_is_refused(made, tmp_path, capsys):
    (wheel,) = (made / "files").glob("*.whl")
    wheel.write_bytes(b"cut")
    assert run(["publish", str(made), str(tmp_path / "www")]) == 6
    assert "is not whole" in capsys.readouterr().err
    assert not (tmp_path / "www").exists()


@pytest.mark.parametrize("content", [None, "{}", "[", '{"files": []}'], ids=["absent", "empty", "no JSON", "a list"])
def test_what_is_no_index_is_refused(content, tmp_path, capsys):
    (tmp_path / "site").mkdir()
    if content is not None:
        (tmp_path / "site" / "builder-index.json").write_text(content)
    assert run(["publish", str(tmp_path / "site"), str(tmp_path / "www")]) in (3, 6)
    message = capsys.readouterr().err
    assert "help:" in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("s3://", "is not a bucket"),
        ("s3://b/../c", "is not a bucket"),
        ("s3://bucket/a b", "is not a bucket"),
        ("ftp://host/x", "no kind that is known"),
        ("hub:owner", "is not a repository"),
        ("hub:../../x", "is not a repository"),
    ],
)
def test_a_target_of_no_kind_is_refused(made, target, message, capsys):
    assert run(["publish", str(made), target]) == 2
    assert message in capsys.readouterr().err


def test_without_rclone_a_bucket_is_refused_with_a_remedy(made, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["publish", str(made), "s3://bucket/prefix"]) == 4
    assert "install 'rclone'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spoil", "code", "message"),
    [
        pytest.param(lambda build: (build / str(CPU) / "_ops.py").write_text("x"), 6, "digest", id="changed"),
        pytest.param(lambda build: (build / str(CPU) / "more.py").write_text("x"), 6, "digest", id="a file more"),
        pytest.param(lambda build: (build / str(CPU) / "metadata.json").unlink(), 6, "metadata.json", id="no metadata"),
        pytest.param(lambda build: (build / str(CPU)).rename(build / "other"), 3, "no variants", id="no variant"),
    ],
)
def test_a_layout_that_is_not_whole_never_reaches_the_hub(tmp_path, spoil, code, message, capsys):
    build = tmp_path / "build"
    assert run(["bundle", str(make(tmp_path, "relu", CPU)), "--output", str(build)]) == 0
    spoil(build)
    assert run(["publish", str(build), "hub:team/relu"]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--create-pr", "--private"])
def test_an_option_of_the_hub_is_refused_for_another_target(made, option, tmp_path, capsys):
    assert run(["publish", str(made), str(tmp_path / "www"), option]) == 2
    assert "the hub has them" in capsys.readouterr().err
    assert not (tmp_path / "www").exists()


def test_what_a_directory_got_is_one_document(made, tmp_path, capsys):
    capsys.readouterr()
    assert run(["publish", str(made), str(tmp_path / "www"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["status"], len(said["wheels"])) == ("published", 1)
