"""Git, asked about a stranger's folder, runs nothing that the folder brought."""

import ast
import os

import pytest

from builder.ci.plan import make
from builder.ci.plan.changes import changed_since
from builder.errors import ToolError
from builder.kernel import load
from builder.kernel.git import Checkout
from builder.matrix import rows
from builder.matrix.selection import Scope
from builder.publish import bundle
from builder.repro import setting as copies
from tests.given.files import write
from tests.given.repositories import commit, git
from tests.paths import ROOT

PACKAGE = ROOT / "builder"
CONFIG = """\
[general]
name = "case"
version = 1
edition = 5
license = "MIT"
backends = ["cpu"]

[torch]
src = ["binding.cpp"]

[kernel.case-cpu]
backend = "cpu"
depends = ["torch"]
src = ["case.cpp"]
"""
FILES = {
    "build.toml": CONFIG,
    "binding.cpp": "// binding",
    "case.cpp": "// case",
    "torch-ext/case/__init__.py": "",
    ".gitattributes": "*.cpp filter=evil diff=evil\n",
}


@pytest.fixture
def pwned(tmp_path):
    """The file that a stranger's code makes when it runs."""
    return tmp_path / "pwned"


@pytest.fixture
def kernel(tmp_path):
    root = tmp_path / "kernel"
    commit(root, FILES)
    return root


def ask_everything(kernel):
    """Run all that asks git about a kernel's folder."""
    bundle.commit_of(kernel)
    plan = make(load(kernel), rows(), Scope(systems=("x86_64-linux",)))
    changed_since(plan, "HEAD", rows())


def evil(pwned):
    return f"sh -c 'touch {pwned}; cat' --"


@pytest.mark.parametrize("folder", ["", "kernel"], ids=["among the files of a clone", "in a folder of a clone"])
def test_a_bare_repository_that_a_clone_brings_runs_nothing(tmp_path, pwned, folder):
    source, kernel = tmp_path / "source", tmp_path / "clone" / folder
    bare = f'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "{evil(pwned)}"\n'
    inside = {"HEAD": "ref: refs/heads/main\n", "config": bare, "objects/.keep": "", "refs/heads/.keep": ""}
    write(source / folder, FILES | inside)
    commit(source)
    git(tmp_path, "clone", "-q", "source", "clone")
    assert bundle.commit_of(kernel) == bundle.Commit(id=git(tmp_path / "clone", "rev-parse", "HEAD"))
    ask_everything(kernel)
    assert not pwned.exists()


def test_a_bare_repository_without_a_checkout_around_it_runs_nothing(tmp_path, pwned):
    git(tmp_path, "init", "-q", "--bare", "kernel")
    git(tmp_path / "kernel", "config", "core.bare", "false")
    git(tmp_path / "kernel", "config", "core.worktree", ".")
    git(tmp_path / "kernel", "config", "core.fsmonitor", evil(pwned))
    assert bundle.commit_of(tmp_path / "kernel") is None
    assert not pwned.exists()


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(("core.fsmonitor",), id="fsmonitor"),
        pytest.param(("filter.evil.smudge", "filter.evil.clean"), id="filter"),
        pytest.param(("filter.evil.process",), id="long-running filter"),
        pytest.param(("filter.ev=il.clean", "filter.evil.clean"), id="filter with an odd name"),
        pytest.param(("diff.evil.textconv", "diff.evil.command", "diff.external"), id="diff"),
        pytest.param(("core.pager", "pager.status", "alias.status", "core.editor", "core.sshCommand"), id="others"),
    ],
)
def test_the_settings_of_a_repository_run_nothing(kernel, pwned, settings):
    for name in settings:
        git(kernel, "config", name, evil(pwned))
    os.utime(kernel / "case.cpp", (1, 1))  # git looks into a file whose time is another
    ask_everything(kernel)
    assert not pwned.exists()


def test_hooks_run_nothing(kernel, pwned):
    for name in ("post-index-change", "fsmonitor-watchman", "post-checkout", "reference-transaction"):
        hook = kernel / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {pwned}\n", encoding="utf-8")
        hook.chmod(0o755)
    os.utime(kernel / "case.cpp", (1, 1))
    ask_everything(kernel)
    assert not pwned.exists()


def test_an_object_that_is_missing_is_fetched_from_nowhere(kernel, pwned):
    blob = git(kernel, "rev-parse", "HEAD:case.cpp")
    (kernel / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    git(kernel, "config", "extensions.partialClone", "origin")
    git(kernel, "config", "core.repositoryformatversion", "1")
    git(kernel, "config", "remote.origin.url", f"ext::sh -c touch% {pwned}")
    git(kernel, "config", "remote.origin.promisor", "true")
    git(kernel, "config", "protocol.ext.allow", "always")
    ask_everything(kernel)
    assert not pwned.exists()


def test_an_object_that_stands_for_another_is_not_believed(kernel):
    before = git(kernel, "rev-parse", "HEAD")
    write(kernel, {"case.cpp": "// other"})
    git(kernel, "commit", "-qam", "two")
    git(kernel, "replace", before, "HEAD")
    plan = make(load(kernel), rows(), Scope(systems=("x86_64-linux",)))
    assert changed_since(plan, before, rows()).cells


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE"])
def test_variables_of_the_user_change_no_answer(kernel, tmp_path, monkeypatch, name):
    expected = bundle.commit_of(kernel)
    monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert bundle.commit_of(kernel) == expected


def test_a_variable_of_the_user_runs_nothing(kernel, pwned, monkeypatch):
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "GIT_ASKPASS"):
        monkeypatch.setenv(name, evil(pwned))
    ask_everything(kernel)
    assert not pwned.exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to another user")
def test_the_folder_of_another_user_is_read_where_the_users_own_settings_say_so(kernel, tmp_path, monkeypatch):
    os.chown(kernel, 65534, 65534)
    os.chown(kernel / ".git", 65534, 65534)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert bundle.commit_of(kernel) is None
    (home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {kernel}\n", encoding="utf-8")
    assert bundle.commit_of(kernel) is not None


def test_the_old_tree_has_files_alone_and_none_outside(kernel, tmp_path):
    (kernel / "link").symlink_to("/etc/passwd")
    (kernel / os.fsdecode(b"caf\xe9")).write_text("x", encoding="utf-8")
    git(kernel, "add", "-A")
    git(kernel, "commit", "-qm", "two")
    found = Checkout.around(kernel)
    found.write_tree(found.commit("HEAD"), tmp_path / "old")
    assert not (tmp_path / "old" / "link").exists()
    assert (tmp_path / "old" / "case.cpp").read_text(encoding="utf-8") == "// case"
    assert (tmp_path / "old" / os.fsdecode(b"caf\xe9")).exists()


def test_a_copy_that_git_makes_reads_no_settings_of_the_kernel(tmp_path, pwned):
    kernel = tmp_path / "kernel"
    write(kernel, FILES | {".gitconfig": f'[filter "evil"]\n\tclean = {evil(pwned)}\n\tsmudge = {evil(pwned)}\n'})
    for archive in (False, True):
        copies.cloned(kernel, tmp_path / str(archive), archive=archive)
    assert not pwned.exists()


def test_without_git_it_is_said(kernel, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="cannot start 'git'"):
        bundle.commit_of(kernel)


def test_no_module_but_two_start_git():
    starting = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            words = node.elts if isinstance(node, ast.List) else node.args if isinstance(node, ast.Call) else ()
            first = next(iter(words), None)
            called = getattr(node, "func", None)
            compares = getattr(called, "attr", getattr(called, "id", None)) in ("startswith", "installing")
            if isinstance(first, ast.Call) and getattr(first.func, "id", None) == "program":
                starting.append(path.relative_to(PACKAGE).as_posix())
            if isinstance(first, ast.Constant) and first.value == "git" and not compares:
                starting.append(path.relative_to(PACKAGE).as_posix())
    assert set(starting) == {"kernel/git.py", "kernel/git_fetch.py"}
