"""Foreign sources in the store: fetched once, verified each time, by hash whatever the place."""

import io
import multiprocessing
import socket
import tarfile
import threading
import time
from dataclasses import replace

import pytest

from builder.config.sources import ForeignSource
from builder.environment import foreign
from builder.environment.download import Fetching
from builder.errors import BuilderError, ToolError, WrongHashError
from builder.store import StoreError
from builder.store.items import collect, items
from tests.given.files import sha256
from tests.given.files import tree as files
from tests.given.repositories import commit, git
from tests.given.servers import serving_folder

URL = "https://example.org/cut.git"
ARCHIVE = "https://example.org/fmt-1.0.tar.gz"


@pytest.fixture
def fetching(store, tmp_path):
    """Return a fetch whose URLs lead into the folder of the test, and what it says."""

    def made(**environ):
        mirrors = {"BUILDER_MIRRORS": f"https://example.org/={tmp_path}/", "PATH": "/usr/bin:/bin", **environ}
        return Fetching(store=store, environ=mirrors, progress=said.append)

    said = []
    made.said = said
    return made


@pytest.fixture
def archive(tmp_path):
    """Return a source that is an archive with one file."""
    path, text = tmp_path / "fmt-1.0.tar.gz", b"int a;"
    with tarfile.open(path, "w:gz") as opened:
        info = tarfile.TarInfo("top/a.h")
        info.size = len(text)
        opened.addfile(info, io.BytesIO(text))
    return ForeignSource(url=ARCHIVE, sha256=sha256(path))


def test_a_commit_is_fetched_once(fetching, tmp_path):
    source = ForeignSource(git=URL, rev=commit(tmp_path / "cut.git", {"include/a": "a"}))
    tree = foreign.tree("cut", source, fetching())
    assert sorted(files(tree)) == ["include/a"]
    (tmp_path / "cut.git").rename(tmp_path / "gone")
    assert foreign.tree("cut", source, fetching()) == tree
    assert fetching.said == ["fetching the foreign source 'cut'"]


def test_a_commit_that_no_branch_has_any_more_is_fetched_where_the_server_gives_it(fetching, tmp_path):
    old = commit(tmp_path / "cut.git", {"a": "1"})
    git(tmp_path / "cut.git", "commit", "--quiet", "--amend", "-m", "b")
    assert sorted(files(foreign.tree("cut", ForeignSource(git=URL, rev=old), fetching()))) == ["a"]


def test_a_commit_that_is_not_there_is_told_with_the_place(fetching, tmp_path):
    commit(tmp_path / "cut.git", {"a": "1"})
    with pytest.raises(ToolError, match=f"git cannot fetch {'1' * 40} of {URL} ") as raised:
        foreign.tree("cut", ForeignSource(git=URL, rev="1" * 40), fetching())
    assert f"(from {tmp_path}/cut.git)" in raised.value.message
    assert "BUILDER_MIRRORS" in raised.value.help


def test_the_hash_of_a_tag_is_told_with_its_commit(fetching, tmp_path):
    rev = commit(tmp_path / "cut.git", {"a": "1"})
    git(tmp_path / "cut.git", "tag", "-a", "v1", "-m", "v1")
    with pytest.raises(ToolError, match=f"is no commit: it leads to {rev}"):
        foreign.tree("cut", ForeignSource(git=URL, rev=git(tmp_path / "cut.git", "rev-parse", "v1")), fetching())


def test_files_are_as_the_commit_has_them_whatever_its_attributes_say(fetching, tmp_path):
    rev = commit(tmp_path / "cut.git", {".gitattributes": "* text eol=crlf ident\n", "a": "$Id$\nb\n"})
    tree = foreign.tree("cut", ForeignSource(git=URL, rev=rev), fetching())
    assert (tree / "a").read_bytes() == b"$Id$\nb\n"


@pytest.fixture
def nested(tmp_path):
    """Return a commit with two submodules, of which one has a submodule of its own."""
    commit(tmp_path / "inner", {"deep": "1"})
    for name, own, submodules in (
        ("mid", {"own": "1"}, {"sub": "inner"}),
        ("cut.git", {"top": "1"}, {"third/mid": "mid", "third/inner": "inner"}),
    ):
        commit(tmp_path / name, own)
        for place, of in submodules.items():
            git(tmp_path / name, "submodule", "--quiet", "add", f"../{of}", place)
        git(tmp_path / name, "commit", "--quiet", "-m", "sub")
    return git(tmp_path / "cut.git", "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("submodules", "found"),
    [
        pytest.param((), ["top"], id="none"),
        pytest.param(False, ["top"], id="false"),
        pytest.param(("third/inner",), ["third/inner/deep", "top"], id="one"),
        pytest.param(True, ["third/inner/deep", "third/mid/own", "third/mid/sub/deep", "top"], id="all"),
    ],
)
def test_submodules_come_by_choice_at_the_commits_of_the_tree(fetching, tmp_path, nested, submodules, found):
    (tmp_path / "inner/deep").write_text("2")
    git(tmp_path / "inner", "commit", "--quiet", "-am", "later")
    tree = foreign.tree("cut", ForeignSource(git=URL, rev=nested, submodules=submodules), fetching())
    assert [name for name in sorted(files(tree)) if ".git" not in name] == found
    assert all(path.read_text() == "1" for path in tree.rglob("deep"))


def test_a_submodule_that_is_not_there_is_told_with_those_that_are(fetching, nested):
    source = ForeignSource(git=URL, rev=nested, submodules=("third/nothing",))
    with pytest.raises(ToolError, match="no submodule 'third/nothing': it has 'third/inner', 'third/mid'"):
        foreign.tree("cut", source, fetching())


@pytest.mark.parametrize("url", ["ext::sh -c touch% x", "--upload-pack=touch x", "ssh://-oProxyCommand=x/y"])
@pytest.mark.usefixtures("nested")
def test_the_url_of_a_submodule_starts_no_program(fetching, tmp_path, url):
    text = (tmp_path / "cut.git/.gitmodules").read_text().replace("../mid", url)
    (tmp_path / "cut.git/.gitmodules").write_text(text)
    git(tmp_path / "cut.git", "commit", "--quiet", "-am", "hostile")
    rev = git(tmp_path / "cut.git", "rev-parse", "HEAD")
    with pytest.raises(ToolError, match="none of https, http or ssh"):
        foreign.tree("cut", ForeignSource(git=URL, rev=rev, submodules=True), fetching())


def test_a_link_out_of_a_commit_is_refused(fetching, tmp_path):
    commit(tmp_path / "cut.git", {"a": "1"})
    (tmp_path / "cut.git/link").symlink_to("/etc/passwd")
    git(tmp_path / "cut.git", "add", ".")
    git(tmp_path / "cut.git", "commit", "--quiet", "-m", "link")
    source = ForeignSource(git=URL, rev=git(tmp_path / "cut.git", "rev-parse", "HEAD"))
    with pytest.raises(ToolError, match="is a link to '/etc/passwd', which is outside of the tree"):
        foreign.tree("cut", source, fetching())


def test_an_archive_is_unpacked_and_used_again(fetching, tmp_path, archive):
    assert sorted(files(foreign.tree("fmt", archive, fetching()))) == ["a.h"]
    (tmp_path / "fmt-1.0.tar.gz").unlink()
    assert sorted(files(foreign.tree("fmt", archive, fetching(BUILDER_MIRRORS="")))) == ["a.h"]


def test_an_archive_with_another_hash_is_told_with_both(fetching, archive):
    with pytest.raises(WrongHashError) as raised:
        foreign.tree("fmt", ForeignSource(url=ARCHIVE, sha256="0" * 64), fetching())
    assert f"expected sha256 {'0' * 64}" in raised.value.message
    assert f"found sha256    {archive.sha256}" in raised.value.message


def test_a_server_is_asked_and_its_answer_is_told(fetching, tmp_path, archive):
    with serving_folder(tmp_path) as place:
        mirrored = fetching(BUILDER_MIRRORS=f"https://example.org/={place}/")
        assert sorted(files(foreign.tree("fmt", archive, mirrored))) == ["a.h"]
        missing = ForeignSource(url=ARCHIVE.replace("fmt", "gone"), sha256="0" * 64)
        with pytest.raises(ToolError, match=r"gone-1\.0\.tar\.gz: the server answers 404"):
            foreign.tree("gone", missing, mirrored)
    with pytest.raises(ToolError, match=r"cannot fetch http://127\.0\.0\.1:.*refused"):
        foreign.tree("gone", missing, mirrored)


@pytest.mark.parametrize("damage", ["change", "add", "remove", "entry"])
def test_a_damaged_tree_is_fetched_again(fetching, archive, damage):
    tree = foreign.tree("fmt", archive, fetching())
    match damage:
        case "change":
            (tree / "a.h").write_text("int b;")
        case "add":
            (tree / "b.h").write_text("int b;")
        case "remove":
            (tree / "a.h").unlink()
        case "entry":
            (tree.parent / "source.json").write_text("[")
    again = foreign.tree("fmt", archive, fetching())
    assert sorted(files(again)) == ["a.h"]
    assert (again / "a.h").read_text() == "int a;"


def test_what_a_stranger_may_write_is_not_used(fetching, archive):
    foreign.tree("fmt", archive, fetching()).parent.chmod(0o777)
    with pytest.raises(StoreError, match="anybody may write into it"):
        foreign.tree("fmt", archive, fetching())


def test_a_failed_fetch_leaves_nothing(fetching, store):
    for source in (ForeignSource(git=URL, rev="1" * 40), ForeignSource(url=ARCHIVE, sha256="0" * 64)):
        with pytest.raises(ToolError):
            foreign.tree("x", source, fetching())
    assert list((store.root / "sources").iterdir()) == []
    assert list((store.root / "scratch").iterdir()) == []


def test_a_stopped_command_fetches_nothing(fetching, tmp_path):
    source = ForeignSource(git=URL, rev=commit(tmp_path / "cut.git", {"a": "a"}))
    stopped = fetching()
    stopped.processes.cancel()
    with pytest.raises(BuilderError, match="stopped"):
        foreign.tree("cut", source, stopped)


@pytest.mark.parametrize(
    "source",
    [ForeignSource(git=URL, rev="1" * 40), ForeignSource(url=ARCHIVE, sha256="0" * 64)],
    ids=["git", "archive"],
)
def test_a_command_that_is_stopped_waits_for_no_server(fetching, store, source):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and answers nothing
        place = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        waiting = fetching(BUILDER_MIRRORS=f"https://example.org/={place}")
        threading.Timer(1, waiting.processes.cancel).start()
        began = time.monotonic()
        with pytest.raises(ToolError):
            foreign.tree("x", source, waiting)
    assert time.monotonic() - began < 50  # the server is given up after 60
    assert list((store.root / "sources").iterdir()) == []


def test_processes_that_want_one_tree_fetch_it_once(fetching, tmp_path, capfd):
    source = ForeignSource(git=URL, rev=commit(tmp_path / "cut.git", {"a": "a"}))
    printing = replace(fetching(), progress=print)
    fork = multiprocessing.get_context("fork")
    started = [fork.Process(target=foreign.tree, args=("cut", source, printing)) for _ in range(4)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * 4
    assert capfd.readouterr().out.count("fetching") == 1


def test_a_tree_is_an_item_of_the_store_that_goes_when_it_is_unused(fetching, store, tmp_path):
    tree = foreign.tree("cut", ForeignSource(git=URL, rev=commit(tmp_path / "cut.git", {"a": "a"})), fetching())
    (item,) = [item for item in items(store) if item.kind == "sources"]
    with store.use(item.lock):
        assert collect(store, now=item.used + 10, max_age=1, max_size=None) == ()
    assert [gone.kind for gone in collect(store, now=item.used + 10, max_age=1, max_size=None)] == ["sources"]
    assert not tree.exists()


def test_the_longest_prefix_of_a_mirror_counts():
    mirrors = foreign.read_mirrors({"BUILDER_MIRRORS": " https://a.org/=/b/  https://a.org/x/=https://c.org/ "})
    assert mirrors == {"https://a.org/": "/b/", "https://a.org/x/": "https://c.org/"}


@pytest.mark.parametrize("text", ["https://a.org/", "=x", "https://a.org/=ext::sh", "https://a.org/=-x", "a=b"])
def test_a_mirror_that_is_no_place_is_refused(text):
    with pytest.raises(BuilderError, match="is not PREFIX=PLACE"):
        foreign.read_mirrors({"BUILDER_MIRRORS": text})


def test_a_tree_is_named_by_its_hash_and_submodules_and_not_by_its_place():
    here = ForeignSource(git=URL, rev="1" * 40)
    assert foreign.identity(here) == foreign.identity(ForeignSource(git="https://other.org/x", rev="1" * 40))
    assert foreign.identity(here) != foreign.identity(ForeignSource(git=URL, rev="1" * 40, submodules=True))
