"""What changed of several kernels since a commit, in real repositories."""

import json

import pytest

from builder.cli import run
from builder.kernel.git import Checkout, object_of
from tests.ci.test_plan_changes import commit, git
from tests.cli.folders import write


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name in ("one", "two"):
        write(tmp_path / "kernels", name)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(capsys, *options):
    assert run(["matrix", "kernels/*", "--format", "names", "--changed-since", "HEAD", *options]) == 0
    return capsys.readouterr().out.split()


def test_each_kernel_is_judged_by_itself(repository, capsys):
    assert names(capsys) == []
    (repository / "kernels/two/torch-ext/two/__init__.py").write_text("ANSWER = 42\n", encoding="utf-8")
    assert names(capsys) == ["two:torch-cpu"]
    write(repository / "kernels", "three")
    assert names(capsys) == ["three:torch-cpu", "two:torch-cpu"]


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        pytest.param("kernels/two/torch-ext/two/new.py", True, id="a file that a build reads"),
        pytest.param("kernels/two/tests/test_new.py", False, id="a file that none reads"),
        pytest.param("kernels/README.md", False, id="a file beside the kernels"),
    ],
)
def test_a_new_file_is_a_change_where_a_build_reads_it(repository, path, changed, capsys):
    (repository / path).parent.mkdir(parents=True, exist_ok=True)
    (repository / path).write_text("", encoding="utf-8")
    assert names(capsys) == (["two:torch-cpu"] if changed else [])


def test_a_file_that_is_gone_is_a_change(repository, capsys):
    commit(repository, {"kernels/two/torch-ext/two/other.py": ""})
    (repository / "kernels/two/torch-ext/two/other.py").unlink()
    assert names(capsys) == ["two:torch-cpu"]


@pytest.mark.usefixtures("repository")
def test_files_of_a_kernel_that_did_not_change_are_not_written(monkeypatch, capsys):
    monkeypatch.setattr(Checkout, "write_tree", lambda *_: pytest.fail("nothing changed"))
    assert names(capsys) == []


@pytest.mark.usefixtures("repository")
def test_a_revision_that_there_is_not_is_said_once(capsys):
    assert run(["matrix", "kernels/*", "--changed-since", "nowhere"]) == 2
    err = capsys.readouterr().err
    assert err.count("no commit 'nowhere' in this repository") == 1
    assert "of 2 kernels: kernels/one, kernels/two" in err


@pytest.mark.usefixtures("repository")
def test_a_plan_of_nothing_is_an_empty_matrix_and_no_failure(capsys):
    assert run(["matrix", "kernels/*", "--format", "github", "--changed-since", "HEAD"]) == 0
    assert json.loads(capsys.readouterr().out) == {"include": []}


@pytest.mark.parametrize("content", [b"", b"one\ntwo\n", bytes(range(256))])
def test_a_file_has_the_name_that_git_gives_it(repository, content):
    (repository / "file").write_bytes(content)
    found = git(repository, "hash-object", "file")
    assert object_of(content, like=found) == found
