"""Where header-only libraries come from, before anything is built."""

import os

import pytest

from builder import kernel
from builder.config import Backend
from builder.errors import BuilderError, ToolError
from builder.kernel.git_fetch import Fetcher
from builder.make import header_folders
from builder.render.sources import header_calls
from tests.given.repositories import commit

CONFIG = """
[general]
name = "tiny"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]

[torch]
src = ["torch-ext/torch_binding.cpp"]

[kernel.one]
backend = "cuda"
depends = ["torch", "{depends}"]
src = ["one.cu"]
"""


def config(folder, depends="cutlass_3_8"):
    (folder / "build.toml").write_text(CONFIG.format(depends=depends))
    return kernel.load(folder).config


def cutlass(folder, text="// 3.8"):
    for path in ("include/cutlass/cutlass.h", "tools/util/include/cutlass/util/a.h"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_a_pinned_version_is_a_wheel_of_the_environment(tmp_path):
    (wheel,) = header_folders.wheels(config(tmp_path), Backend.CUDA, environ={})
    assert (wheel.name, wheel.version, wheel.file) == (
        "nvidia-cutlass",
        "3.8.0.0",
        "nvidia_cutlass-3.8.0.0-py3-none-any.whl",
    )
    assert header_folders.wheels(config(tmp_path), Backend.CPU, environ={}) == ()


def test_a_version_that_git_fetches_is_no_wheel(tmp_path):
    found = config(tmp_path, "cutlass_4_0")
    assert header_folders.wheels(found, Backend.CUDA, environ={}) == ()
    assert header_folders.folders(found, Backend.CUDA, environ={}, site_packages=tmp_path) == {}


def test_a_folder_that_the_user_names_goes_before_the_wheel(tmp_path):
    environ = {"CUTLASS_SRC_DIR": str(cutlass(tmp_path / "mine"))}
    (tmp_path / "cutlass_library/source").mkdir(parents=True)
    found = config(tmp_path)
    assert header_folders.wheels(found, Backend.CUDA, environ=environ) == ()
    folders = header_folders.folders(found, Backend.CUDA, environ=environ, site_packages=tmp_path)
    assert folders == {"CUTLASS_SRC_DIR": tmp_path / "mine"}
    folders = header_folders.folders(found, Backend.CUDA, environ={}, site_packages=tmp_path)
    assert folders == {"CUTLASS_SRC_DIR": tmp_path / "cutlass_library/source"}


def test_a_named_folder_counts_by_its_content_and_not_by_its_path(tmp_path):
    found = config(tmp_path)

    def digest(name, text="// 3.8"):
        environ = {"CUTLASS_SRC_DIR": str(cutlass(tmp_path / name, text))}
        return header_folders.digests(found, Backend.CUDA, environ=environ)

    first = digest("a")
    assert set(first) == {"CUTLASS_SRC_DIR"}
    assert digest("b") == first
    assert digest("c", "// 3.9") != first
    (tmp_path / "a/include/cutlass/new.h").write_text("")
    assert digest("a") != first
    assert header_folders.digests(found, Backend.CPU, environ={"CUTLASS_SRC_DIR": "nowhere"}) == {}


def test_a_folder_without_the_library_is_refused(tmp_path):
    with pytest.raises(BuilderError, match=r"CUTLASS_SRC_DIR names '.*', and there is no 'include/cutlass/cutlass\.h'"):
        header_folders.digests(config(tmp_path), Backend.CUDA, environ={"CUTLASS_SRC_DIR": str(tmp_path)})


def test_a_commit_is_fetched_whole_and_without_its_history(tmp_path):
    rev = commit(tmp_path / "origin", {"a.h": "// a\n"})
    Fetcher(environ=os.environ).fetch(f"file://{tmp_path / 'origin'}", rev, tmp_path / "kept" / rev)
    assert [path.name for path in (tmp_path / "kept" / rev).iterdir()] == ["a.h"]


def test_a_commit_that_is_not_there_leaves_nothing(tmp_path):
    commit(tmp_path / "origin", {"a.h": "// a\n"})
    with pytest.raises(ToolError, match=f"git cannot fetch {'0' * 40} of file://"):
        Fetcher(environ=os.environ).fetch(f"file://{tmp_path / 'origin'}", "0" * 40, tmp_path / "kept/0")
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_commit_that_was_fetched_before_is_used_again(tmp_path):
    found = config(tmp_path, "cutlass_4_0")
    (commit,) = [str(each["COMMIT"]) for each in header_calls(found, Backend.CUDA)]
    (tmp_path / "kept" / commit).mkdir(parents=True)
    folders = header_folders.fetched(found, Backend.CUDA, environ={}, root=tmp_path / "kept")
    assert list(folders.values()) == [tmp_path / "kept" / commit]
    named = {name: str(tmp_path) for name in folders}
    assert header_folders.fetched(found, Backend.CUDA, environ=named, root=tmp_path / "kept") == {}
