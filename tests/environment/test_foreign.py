"""Foreign sources in the store: fetched once, verified each time, by hash whatever the place."""

import hashlib
import io
import multiprocessing
import socket
import tarfile
import threading
import time

import pytest

from builder.config.sources import ForeignSource
from builder.environment import foreign
from builder.errors import BuilderError, ToolError, WrongHashError
from builder.run import Processes
from builder.store import Store, StoreError
from builder.store.items import collect, items
from tests.given.repositories import commit, git
from tests.given.servers import serving_folder

URL = "https://example.org/cut.git"
ARCHIVE = "https://example.org/fmt-1.0.tar.gz"


def archive(path, text=b"int a;", name="top/a.h"):
    with tarfile.open(path, "w:gz") as opened:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        opened.addfile(info, io.BytesIO(text))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "store")
    made.prepare()
    return made


@pytest.fixture
def trees(store, tmp_path):
    """Return trees whose URLs lead into the folder of the test, and what they say."""

    def made(**environ):
        mirrors = {"BUILDER_MIRRORS": f"https://example.org/={tmp_path}/", "PATH": "/usr/bin:/bin", **environ}
        return foreign.Trees(store=store, environ=mirrors, progress=said.append, processes=Processes())

    said = []
    made.said = said
    return made


def names(tree):
    return sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())


def test_a_commit_is_fetched_once(trees, tmp_path):
    source = ForeignSource(git=URL, rev=commit(tmp_path / "cut.git", {"include/a": "a"}))
    tree = trees().tree("cut", source)
    assert names(tree) == ["include/a"]
    (tmp_path / "cut.git").rename(tmp_path / "gone")
    assert trees().tree("cut", source) == tree
    assert trees.said == ["fetching the foreign source 'cut'"]


def test_a_commit_that_no_branch_has_any_more_is_fetched_where_the_server_gives_it(trees, tmp_path):
    old = commit(tmp_path / "cut.git", {"a": "1"})
    git(tmp_path / "cut.git", "commit", "--quiet", "--amend", "-m", "b")
    assert names(trees().tree("cut", ForeignSource(git=URL, rev=old))) == ["a"]


def test_a_commit_that_is_not_there_is_told_with_the_place(trees, tmp_path):
    commit(tmp_path / "cut.git", {"a": "1"})
    with pytest.raises(ToolError, match=f"git cannot fetch {'1' * 40} of {URL} ") as raised:
        trees().tree("cut", ForeignSource(git=URL, rev="1" * 40))
    assert f"(from {tmp_path}/cut.git)" in raised.value.message
    assert "BUILDER_MIRRORS" in raised.value.help


def test_the_hash_of_a_tag_is_told_with_its_commit(trees, tmp_path):
    rev = commit(tmp_path / "cut.git", {"a": "1"})
    git(tmp_path / "cut.git", "tag", "-a", "v1", "-m", "v1")
    with pytest.raises(ToolError, match=f"is no commit: it leads to {rev}"):
        trees().tree("cut", ForeignSource(git=URL, rev=git(tmp_path / "cut.git", "rev-parse", "v1")))


def test_files_are_as_the_commit_has_them_whatever_its_attributes_say(trees, tmp_path):
    rev = commit(tmp_path / "cut.git", {".gitattributes": "* text eol=crlf ident\n", "a": "$Id$\nb\n"})
    tree = trees().tree("cut", ForeignSource(git=URL, rev=rev))
    assert (tree / "a").read_bytes() == b"$Id$\nb\n"


def with_submodules(tmp_path):
    inner = commit(tmp_path / "inner", {"deep": "1"})
    commit(tmp_path / "mid", {"own": "1"})
    git(tmp_path / "mid", "submodule", "--quiet", "add", "../inner", "sub")
    git(tmp_path / "mid", "commit", "--quiet", "-m", "sub")
    commit(tmp_path / "cut.git", {"top": "1"})
    for name in ("mid", "inner"):
        git(tmp_path / "cut.git", "submodule", "--quiet", "add", f"../{name}", f"third/{name}")
    git(tmp_path / "cut.git", "commit", "--quiet", "-m", "sub")
    assert inner
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
def test_submodules_come_by_choice_at_the_commits_of_the_tree(trees, tmp_path, submodules, found):
    rev = with_submodules(tmp_path)
    (tmp_path / "inner/deep").write_text("2")
    git(tmp_path / "inner", "commit", "--quiet", "-am", "later")
    tree = trees().tree("cut", ForeignSource(git=URL, rev=rev, submodules=submodules))
    assert [name for name in names(tree) if ".git" not in name] == found
    assert all(path.read_text() == "1" for path in tree.rglob("deep"))


def test_a_submodule_that_is_not_there_is_told_with_those_that_are(trees, tmp_path):
    source = ForeignSource(git=URL, rev=with_submodules(tmp_path), submodules=("third/nothing",))
    with pytest.raises(ToolError, match="no submodule 'third/nothing': it has 'third/inner', 'third/mid'"):
        trees().tree("cut", source)


@pytest.mark.parametrize("url", ["ext::sh -c touch% x", "--upload-pack=touch x", "ssh://-oProxyCommand=x/y"])
def test_the_url_of_a_submodule_starts_no_program(trees, tmp_path, url):
    with_submodules(tmp_path)
    text = (tmp_path / "cut.git/.gitmodules").read_text().replace("../mid", url)
    (tmp_path / "cut.git/.gitmodules").write_text(text)
    git(tmp_path / "cut.git", "commit", "--quiet", "-am", "hostile")
    rev = git(tmp_path / "cut.git", "rev-parse", "HEAD")
    with pytest.raises(ToolError, match="none of https, http or ssh"):
        trees().tree("cut", ForeignSource(git=URL, rev=rev, submodules=True))


def test_a_link_out_of_a_commit_is_refused(trees, tmp_path):
    commit(tmp_path / "cut.git", {"a": "1"})
    (tmp_path / "cut.git/link").symlink_to("/etc/passwd")
    git(tmp_path / "cut.git", "add", ".")
    git(tmp_path / "cut.git", "commit", "--quiet", "-m", "link")
    source = ForeignSource(git=URL, rev=git(tmp_path / "cut.git", "rev-parse", "HEAD"))
    with pytest.raises(ToolError, match="is a link to '/etc/passwd', which is outside of the tree"):
        trees().tree("cut", source)


def test_an_archive_is_unpacked_and_used_again(trees, tmp_path):
    source = ForeignSource(url=ARCHIVE, sha256=archive(tmp_path / "fmt-1.0.tar.gz"))
    assert names(trees().tree("fmt", source)) == ["a.h"]
    (tmp_path / "fmt-1.0.tar.gz").unlink()
    assert names(trees(BUILDER_MIRRORS="").tree("fmt", source)) == ["a.h"]


def test_an_archive_with_another_hash_is_told_with_both(trees, tmp_path):
    found = archive(tmp_path / "fmt-1.0.tar.gz")
    with pytest.raises(WrongHashError) as raised:
        trees().tree("fmt", ForeignSource(url=ARCHIVE, sha256="0" * 64))
    assert f"expected sha256 {'0' * 64}" in raised.value.message
    assert f"found sha256    {found}" in raised.value.message


def test_a_server_is_asked_and_its_answer_is_told(trees, tmp_path):
    source = ForeignSource(url=ARCHIVE, sha256=archive(tmp_path / "fmt-1.0.tar.gz"))
    with serving_folder(tmp_path) as place:
        mirrored = trees(BUILDER_MIRRORS=f"https://example.org/={place}/")
        assert names(mirrored.tree("fmt", source)) == ["a.h"]
        missing = ForeignSource(url=ARCHIVE.replace("fmt", "gone"), sha256="0" * 64)
        with pytest.raises(ToolError, match=r"gone-1\.0\.tar\.gz: the server answers 404"):
            mirrored.tree("gone", missing)
    with pytest.raises(ToolError, match=r"cannot fetch http://127\.0\.0\.1:.*refused"):
        mirrored.tree("gone", missing)


@pytest.mark.parametrize("damage", ["change", "add", "remove", "entry"])
def test_a_damaged_tree_is_fetched_again(trees, tmp_path, damage):
    source = ForeignSource(url=ARCHIVE, sha256=archive(tmp_path / "fmt-1.0.tar.gz"))
    tree = trees().tree("fmt", source)
    match damage:
        case "change":
            (tree / "a.h").write_text("int b;")
        case "add":
            (tree / "b.h").write_text("int b;")
        case "remove":
            (tree / "a.h").unlink()
        case "entry":
            (tree.parent / "source.json").write_text("[")
    again = trees().tree("fmt", source)
    assert names(again) == ["a.h"]
    assert (again / "a.h").read_text() == "int a;"


def test_what_a_stranger_may_write_is_not_used(trees, tmp_path):
    source = ForeignSource(url=ARCHIVE, sha256=archive(tmp_path / "fmt-1.0.tar.gz"))
    trees().tree("fmt", source).parent.chmod(0o777)
    with pytest.raises(StoreError, match="anybody may write into it"):
        trees().tree("fmt", source)


def test_a_failed_fetch_leaves_nothing(trees, store):
    for source in (ForeignSource(git=URL, rev="1" * 40), ForeignSource(url=ARCHIVE, sha256="0" * 64)):
        with pytest.raises(ToolError):
            trees().tree("x", source)
    assert list((store.root / "sources").iterdir()) == []
    assert list((store.root / "scratch").iterdir()) == []


def test_a_stopped_command_fetches_nothing(trees, tmp_path):
    source = ForeignSource(git=URL, rev=commit(tmp_path / "cut.git", {"a": "a"}))
    stopped = trees()
    stopped.processes.cancel()
    with pytest.raises(BuilderError, match="stopped"):
        stopped.tree("cut", source)


@pytest.fixture
def silent():
    """Give the address of a server that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


@pytest.mark.parametrize("kind", ["git", "archive"])
def test_a_command_that_is_stopped_waits_for_no_server(trees, store, silent, kind):
    source = {
        "git": ForeignSource(git=URL, rev="1" * 40),
        "archive": ForeignSource(url=ARCHIVE, sha256="0" * 64),
    }[kind]
    waiting = trees(BUILDER_MIRRORS=f"https://example.org/={silent}")
    threading.Timer(1, waiting.processes.cancel).start()
    began = time.monotonic()
    with pytest.raises(ToolError):
        waiting.tree("x", source)
    assert time.monotonic() - began < 50  # the server is given up after 60
    assert list((store.root / "sources").iterdir()) == []


def _fetch(root, environ, source):
    foreign.Trees(store=Store(root), environ=environ, progress=print).tree("cut", source)


def test_processes_that_want_one_tree_fetch_it_once(trees, store, tmp_path, capfd):
    source = ForeignSource(git=URL, rev=commit(tmp_path / "cut.git", {"a": "a"}))
    given = (store.root, trees().environ, source)
    started = [multiprocessing.get_context("fork").Process(target=_fetch, args=given) for _ in range(4)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * 4
    assert capfd.readouterr().out.count("fetching") == 1


def test_a_tree_is_an_item_of_the_store_that_goes_when_it_is_unused(trees, store, tmp_path):
    tree = trees().tree("cut", ForeignSource(git=URL, rev=commit(tmp_path / "cut.git", {"a": "a"})))
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
