"""Which cells changed since a commit, in real repositories."""

import pytest

from builder import kernel as kernels
from builder.ci.plan import make
from builder.ci.plan.changes import changed_since
from builder.errors import BuilderError
from builder.matrix import rows
from builder.matrix.selection import Scope
from tests.given.files import write
from tests.given.repositories import commit, git

CONFIG = """\
[general]
name = "case"
version = 1
edition = 5
license = "MIT"
backends = ["cpu", "cuda"]

[torch]
src = ["torch-ext/binding.cpp"]

[kernel.case-cpu]
backend = "cpu"
depends = ["torch"]
src = ["cpu/*.cpp"]
include = ["include"]

[kernel.case-cuda]
backend = "cuda"
depends = ["torch"]
src = ["cuda/case.cu"]
"""
FILES = {
    "build.toml": CONFIG,
    "torch-ext/binding.cpp": "// binding",
    "torch-ext/case/__init__.py": "",
    "cpu/one.cpp": "// one",
    "cpu/two.cpp": "// two",
    "include/case.h": "// header",
    "cuda/case.cu": "// device",
    "README.md": "a kernel",
}


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repository"
    commit(root, {"kernel/" + name: content for name, content in FILES.items()})
    return root


def left(root, revision="HEAD"):
    plan = make(kernels.load(root / "kernel"), rows(), Scope(systems=("x86_64-linux",)))
    return sorted({cell.backend.value for cell in changed_since(plan, revision, rows()).cells})


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"README.md": "better"}, [], id="a file that no wheel has"),
        pytest.param({"../elsewhere.txt": "x"}, [], id="outside of the kernel"),
        pytest.param({"torch-ext/binding.cpp": "// new"}, ["cpu", "cuda"], id="binding"),
        pytest.param({"torch-ext/case/__init__.py": "x = 1"}, ["cpu", "cuda"], id="package"),
        pytest.param({"torch-ext/case/more.py": ""}, ["cpu", "cuda"], id="new file of the package"),
        pytest.param({"cpu/one.cpp": "// new"}, ["cpu"], id="source of one backend"),
        pytest.param({"cpu/three.cpp": "// new"}, ["cpu"], id="new file of a glob"),
        pytest.param({"include/case.h": "// new"}, ["cpu"], id="header"),
        pytest.param({"include/more.h": "// new"}, ["cpu"], id="new header"),
        pytest.param({"build.toml": "# a comment\n" + CONFIG}, [], id="comment in the config"),
        pytest.param({"build.toml": CONFIG + 'cuda-flags = ["-O3"]\n'}, ["cuda"], id="flags of one backend"),
        pytest.param({"build.toml": CONFIG.replace('"MIT"', '"ISC"')}, ["cpu", "cuda"], id="license"),
        pytest.param(
            {"build.toml": CONFIG + '[matrix.cuda]\ntoolkits = ["13.0"]\n'}, [], id="a row less leaves the others"
        ),
        pytest.param({"build.toml": CONFIG + '[torch.stable-abi]\ncpu = "2.10"\n'}, ["cpu"], id="stable abi of one"),
    ],
)
@pytest.mark.parametrize("committed", [True, False], ids=["committed", "in the working tree"])
def test_a_change_is_to_the_backends_that_it_reaches(repository, files, expected, committed):
    before = git(repository, "rev-parse", "HEAD")
    changed = {"kernel/" + name: content for name, content in files.items()}
    if committed:
        commit(repository, changed)
    else:
        write(repository, changed)
    assert left(repository, before) == expected


def test_a_deleted_file_is_a_change(repository):
    (repository / "kernel" / "cpu" / "two.cpp").unlink()
    assert left(repository) == ["cpu"]


def test_what_the_other_branch_did_meanwhile_does_not_count(repository):
    git(repository, "checkout", "-q", "-b", "mine")
    commit(repository, {"kernel/cuda/case.cu": "// mine"})
    git(repository, "checkout", "-q", "main")
    commit(repository, {"kernel/cpu/one.cpp": "// theirs"})
    git(repository, "checkout", "-q", "mine")
    assert left(repository, "main") == ["cuda"]


def test_a_kernel_that_was_not_there_is_all_new(repository):
    before = git(repository, "rev-parse", "HEAD")
    git(repository, "mv", "kernel", "moved")
    commit(repository)
    git(repository, "mv", "moved", "kernel")
    middle = git(repository, "rev-parse", "HEAD")
    commit(repository)
    assert left(repository, middle) == ["cpu", "cuda"]
    assert left(repository, before) == []


def test_a_config_that_was_wrong_gave_no_wheel(repository):
    broken = commit(repository, {"kernel/build.toml": "[general\n"})
    commit(repository, {"kernel/build.toml": CONFIG})
    assert left(repository, broken) == ["cpu", "cuda"]


def test_a_row_that_is_new_is_built(repository):
    narrow = commit(repository, {"kernel/build.toml": CONFIG + '[matrix.cuda]\ntoolkits = ["13.0"]\n'})
    commit(repository, {"kernel/build.toml": CONFIG})
    plan = make(kernels.load(repository / "kernel"), rows(), Scope(systems=("x86_64-linux",)))
    assert {cell.toolkit for cell in changed_since(plan, narrow, rows()).cells} == {"12.6", "13.2"}


def test_the_reason_names_the_commit(repository):
    base = git(repository, "rev-parse", "HEAD")
    plan = make(kernels.load(repository / "kernel"), rows(), Scope(systems=("x86_64-linux",)))
    skipped = changed_since(plan, "main", rows()).skipped
    unchanged = [one for one in skipped if one.rule == "unchanged"]
    assert len(unchanged) == len(plan.cells)
    assert base[:12] in unchanged[0].message


def test_nothing_is_left_behind_in_the_repository(repository):
    before = sorted(repository.rglob("*"))
    left(repository)
    assert sorted(repository.rglob("*")) == before
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "revision",
    [
        pytest.param("nowhere", id="unknown"),
        pytest.param("0" * 40, id="hash of nothing"),
        pytest.param("HEAD:kernel", id="a tree"),
        pytest.param("", id="empty"),
        pytest.param("--output=/tmp/x", id="an option"),
        pytest.param("a\n::set-env name=x::y", id="a workflow command"),
        pytest.param("${{ github.token }}", id="an expression"),
        pytest.param("\x1b[31m", id="a terminal's command"),
    ],
)
def test_a_bad_revision_is_refused(repository, revision):
    with pytest.raises(BuilderError, match=r"is not a revision|no commit '") as raised:
        left(repository, revision)
    assert "name a branch, a tag or a commit" in str(raised.value)
    assert "\n::" not in str(raised.value)
    assert "\x1b" not in str(raised.value)


def test_a_shallow_clone_is_told_to_fetch(repository, tmp_path):
    old = git(repository, "rev-parse", "HEAD")
    commit(repository, {"kernel/cpu/one.cpp": "// new"})
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{repository}", str(clone))
    with pytest.raises(BuilderError, match="the clone is shallow") as raised:
        left(clone, old)
    assert "fetch-depth: 0" in str(raised.value)


def test_a_shallow_clone_of_two_branches_has_no_commit_in_common(repository, tmp_path):
    git(repository, "checkout", "-q", "-b", "other")
    commit(repository, {"kernel/cpu/one.cpp": "// other"})
    git(repository, "checkout", "-q", "main")
    commit(repository, {"kernel/cpu/two.cpp": "// main"})
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", "--no-single-branch", f"file://{repository}", str(clone))
    with pytest.raises(BuilderError, match="have no commit in common: the clone is shallow"):
        left(clone, "origin/other")


def test_a_directory_outside_of_any_repository_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    write(tmp_path / "kernel", FILES)
    with pytest.raises(BuilderError, match="--changed-since needs a git repository"):
        left(tmp_path)


def test_a_link_that_leaves_the_kernel_is_not_followed(repository):
    secret = repository.parent / "secret"
    secret.write_text("x", encoding="utf-8")
    (repository / "kernel" / "cpu" / "two.cpp").unlink()
    (repository / "kernel" / "cpu" / "two.cpp").symlink_to(secret)
    linked = commit(repository)
    (repository / "kernel" / "cpu" / "two.cpp").unlink()
    commit(repository, {"kernel/cpu/two.cpp": "// two"})
    assert left(repository, linked) == ["cpu"]
