"""A project is written whole or not at all, and only over what is its own."""

import hashlib
import os

import pytest

from builder.errors import BuilderError, NothingToDoError
from builder.render.project import MANIFEST, Project

PROJECT = Project({"b.txt": b"b\n", "a/c.txt": b"c\n"})


def tree(root):
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }


def test_files_are_sorted_whatever_order_they_came_in():
    assert list(PROJECT.files) == ["a/c.txt", "b.txt"]


def test_the_digest_knows_paths_from_contents():
    digests = {
        Project(files).digest
        for files in ({"ab": b"c"}, {"a": b"bc"}, {"a": b"", "b": b"c"}, {"a": b"c", "b": b""}, {})
    }
    assert len(digests) == 5
    assert Project({"a": b"1", "b": b"2"}).digest == Project({"b": b"2", "a": b"1"}).digest


def test_a_project_is_written_and_compares_equal(tmp_path):
    PROJECT.write(tmp_path / "new")
    assert tree(tmp_path / "new") == PROJECT.files
    assert PROJECT.compare(tmp_path / "new") == ""


def test_writing_again_needs_no_force(tmp_path):
    PROJECT.write(tmp_path)
    Project({"b.txt": b"newer\n"}).write(tmp_path)
    assert tree(tmp_path) == {"b.txt": b"newer\n"}


def test_stale_files_and_their_empty_folders_go(tmp_path):
    PROJECT.write(tmp_path)
    Project({"b.txt": b"b\n"}).write(tmp_path)
    assert not (tmp_path / "a").exists()


def test_foreign_files_stay_and_keep_their_folder(tmp_path):
    PROJECT.write(tmp_path)
    (tmp_path / "a/mine.txt").write_text("mine")
    Project({}).write(tmp_path)
    assert tree(tmp_path) == {"a/mine.txt": b"mine"}


def test_a_stale_file_that_the_user_changed_stays(tmp_path):
    PROJECT.write(tmp_path)
    (tmp_path / "a/c.txt").write_text("changed")
    Project({"b.txt": b"b\n"}).write(tmp_path)
    assert tree(tmp_path) == {"a/c.txt": b"changed", "b.txt": b"b\n"}


@pytest.mark.parametrize("how", ["foreign", "changed"])
def test_a_file_in_the_way_stops_everything(tmp_path, how):
    if how == "changed":
        PROJECT.write(tmp_path)
    (tmp_path / "b.txt").write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(NothingToDoError, match=r"already has 'b\.txt'") as caught:
        Project({"a/c.txt": b"other", "b.txt": b"b", "z": b"z"}).write(tmp_path)
    assert "--force" in str(caught.value)
    assert tree(tmp_path) == before


def test_force_replaces_what_is_in_the_way_and_nothing_else(tmp_path):
    (tmp_path / "b.txt").write_text("mine")
    (tmp_path / "other.txt").write_text("other")
    PROJECT.write(tmp_path, overwrite=True)
    assert tree(tmp_path) == {**PROJECT.files, "other.txt": b"other"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_where_a_file_belongs_is_never_removed(tmp_path, overwrite):
    (tmp_path / "b.txt").mkdir()
    with pytest.raises(NothingToDoError, match=r"b\.txt"):
        PROJECT.write(tmp_path, overwrite=overwrite)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_where_a_folder_belongs_is_never_removed(tmp_path, overwrite):
    (tmp_path / "a").write_text("mine")
    with pytest.raises(NothingToDoError, match="is a file"):
        PROJECT.write(tmp_path, overwrite=overwrite)
    assert tree(tmp_path) == {"a": b"mine"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_is_written_through_a_link_to_another_folder(tmp_path, overwrite):
    outside = tmp_path / "outside"
    outside.mkdir()
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").symlink_to(outside)
    with pytest.raises(NothingToDoError, match="link"):
        PROJECT.write(root, overwrite=overwrite)
    assert tree(outside) == {}


@pytest.mark.parametrize("line", ["../outside.txt", "/etc/hostname", "a/../../outside.txt", "."])
def test_a_manifest_cannot_name_files_outside(tmp_path, line):
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    root = tmp_path / "root"
    root.mkdir()
    (root / MANIFEST).write_text(f"{hashlib.sha256(b'mine').hexdigest()}  {line}\n")
    Project({"a": b"a"}).write(root)
    assert outside.read_text() == "mine"


def test_comparing_shows_what_differs_is_missing_and_is_left_over(tmp_path):
    PROJECT.write(tmp_path)
    (tmp_path / "b.txt").write_text("changed\n")
    difference = Project({"b.txt": b"b\n", "new.txt": b"new"}).compare(tmp_path)
    assert "-changed\n+b\n" in difference
    assert "--- /dev/null\n+++ b/new.txt\n" in difference
    assert "\\ No newline at end of file\n" in difference
    assert "--- a/a/c.txt\n+++ /dev/null\n" in difference


def test_comparing_ignores_foreign_files(tmp_path):
    PROJECT.write(tmp_path)
    (tmp_path / "build").mkdir()
    (tmp_path / "build/x").write_text("x")
    assert PROJECT.compare(tmp_path) == ""


def test_comparing_names_binary_files(tmp_path):
    Project({"x": b"\xff\x00"}).write(tmp_path)
    assert Project({"x": b"\xff\x01"}).compare(tmp_path) == "Binary files a/x and b/x differ\n"


def test_comparing_with_nothing_lists_every_file(tmp_path):
    assert PROJECT.compare(tmp_path / "absent").count("--- /dev/null") == 2


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(BuilderError, match="cannot write"):
        PROJECT.write(tmp_path / "new")


def test_a_path_that_is_a_file_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BuilderError, match="file"):
        PROJECT.write(tmp_path / "file")
