"""Where the builder comes from is found, and never told with anyone's credentials."""

import json
from unittest import mock

import pytest

from builder import __version__, resources
from builder.ci import workflow
from builder.ci.workflow import BuilderAddress
from tests.given.repositories import git

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("url", "host", "repository", "ref"),
    [
        ("github:someone/builder", "github.com", "someone/builder", None),
        ("github:someone/builder/v1.0", "github.com", "someone/builder", "v1.0"),
        ("gitlab:someone/builder", "gitlab.com", "someone/builder", None),
        ("https://github.com/someone/builder", "github.com", "someone/builder", None),
        ("https://github.com/someone/builder.git", "github.com", "someone/builder", None),
        ("https://github.com/someone/builder.git@v1.0", "github.com", "someone/builder", "v1.0"),
        ("git+https://git.example.org:8443/a/b/c?rev=" + COMMIT, "git.example.org:8443", "a/b/c", COMMIT),
        ("https://me:secret@github.com/someone/builder", "github.com", "someone/builder", None),
        ("git@github.com:someone/builder.git", "github.com", "someone/builder", None),
        ("ssh://git@git.example.org:2222/someone/builder.git", "git.example.org", "someone/builder", None),
    ],
)
def test_an_address_is_read_in_the_forms_that_tools_write(url, host, repository, ref):
    assert BuilderAddress.parse(url) == BuilderAddress(host=host, repository=repository, ref=ref)


@pytest.mark.parametrize(
    "url",
    ["", "/srv/git/builder", "file:///srv/builder", "../builder", "path:../..", "https://github.com/one", "github:a/..",
     "github:a/b c", "github:a/b\n", "https://github.com/a/b@x;y", 'github:a/b"'],
)  # fmt: skip
def test_what_others_cannot_reach_or_could_break_out_of_a_file_is_no_home(url):
    assert BuilderAddress.parse(url) is None


@pytest.mark.parametrize(
    ("found", "flake", "requirement"),
    [
        pytest.param(
            BuilderAddress(host="github.com", repository="a/b", ref=COMMIT),
            "github:a/b",
            f"kernel-wheel-builder @ git+https://github.com/a/b@{COMMIT}",
            id="commit",
        ),
        pytest.param(
            BuilderAddress(host="example.org", repository="a/b", ref="v2"),
            "git+https://example.org/a/b?ref=v2",
            "kernel-wheel-builder @ git+https://example.org/a/b@v2",
            id="another forge",
        ),
        pytest.param(
            BuilderAddress(host="github.com", repository="a/b", released=True),
            "github:a/b",
            f"kernel-wheel-builder=={__version__}",
            id="released",
        ),
    ],
)
def test_each_tool_gets_its_own_spelling(found, flake, requirement):
    assert found.flake == flake
    assert found.requirement == requirement
    assert BuilderAddress.parse(found.flake) is not None


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Stand in for a checkout of the builder, whose one commit its origin has."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    git(folder, "remote", "add", "origin", "https://me:secret@github.com/someone/builder.git")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    monkeypatch.setattr(resources, "CHECKOUT", folder)
    return folder


@pytest.fixture
def installed(monkeypatch):
    """Say what importlib would of a builder that was installed in some way."""
    monkeypatch.setattr(resources, "CHECKOUT", None)
    found = mock.Mock(**{"read_text.return_value": None, "metadata.get_all.return_value": []})
    monkeypatch.setattr(workflow.metadata, "distribution", lambda _: found)
    return found


def test_a_checkout_tells_its_origin_and_its_commit(checkout):
    commit = git(checkout, "rev-parse", "HEAD")
    assert workflow.find() == BuilderAddress(host="github.com", repository="someone/builder", ref=commit)


def test_a_commit_that_the_origin_has_not_is_not_named(checkout):
    git(checkout, "commit", "-q", "--allow-empty", "-m", "two")
    assert workflow.find().ref is None


def test_a_checkout_of_a_folder_of_this_machine_has_no_home(checkout, monkeypatch):
    git(checkout, "remote", "set-url", "origin", "/srv/git/builder")
    monkeypatch.setattr(workflow, "_of_distribution", lambda: None)
    assert workflow.find() is None


def test_a_repository_around_an_installed_builder_says_nothing(checkout, monkeypatch):
    inner = checkout / "env" / "site-packages"
    inner.mkdir(parents=True)
    monkeypatch.setattr(resources, "CHECKOUT", inner)
    monkeypatch.setattr(workflow, "_of_distribution", lambda: None)
    assert workflow.find() is None


def test_pip_noted_the_commit_that_it_installed(installed):
    note = {"url": "https://github.com/someone/builder.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
    installed.read_text.return_value = json.dumps(note)
    assert workflow.find() == BuilderAddress(host="github.com", repository="someone/builder", ref=COMMIT)


def test_pip_noted_the_folder_that_it_installed(checkout, installed):
    installed.read_text.return_value = json.dumps({"url": checkout.as_uri(), "dir_info": {}})
    assert workflow.find().repository == "someone/builder"


def test_an_installed_release_names_its_repository(installed):
    installed.metadata.get_all.return_value = [
        "Documentation, https://example.org/docs",
        "Source, https://github.com/someone/builder",
    ]
    assert workflow.find() == BuilderAddress(host="github.com", repository="someone/builder", released=True)


@pytest.mark.parametrize(
    "note",
    ["", "{", "[]", '"x"', "{}", '{"url": 1}', '{"url": "https://x/y/z", "vcs_info": {}}', '{"url": "file:///"}'],
)
def test_a_note_that_is_damaged_or_tells_nothing_is_no_home(installed, note):
    installed.read_text.return_value = note
    assert workflow.find() is None


def test_without_git_there_is_no_home_and_no_failure(checkout, monkeypatch):
    monkeypatch.setenv("PATH", str(checkout))
    monkeypatch.setattr(workflow, "_of_distribution", lambda: None)
    assert workflow.find() is None
