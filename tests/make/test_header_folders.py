"""Where header-only libraries come from, before anything is built."""

import os

import pytest

from builder import kernel
from builder.config import Backend
from builder.errors import BuilderError, ToolError
from builder.kernel.git_fetch import Fetcher
from builder.make import header_folders
from builder.render.external_sources import header_calls
from tests.given.files import write
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

CUTLASS = {"include/cutlass/cutlass.h": "// 3.8", "tools/util/include/cutlass/util/a.h": "// 3.8"}


def config(folder, depends="cutlass_3_8"):
    (folder / "build.toml").write_text(CONFIG.format(depends=depends))
    return kernel.load(folder).config


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
    environ = {"CUTLASS_SRC_DIR": str(write(tmp_path / "mine", CUTLASS))}
    (tmp_path / "cutlass_library/source").mkdir(parents=True)
    found = config(tmp_path)
    assert header_folders.wheels(found, Backend.CUDA, environ=environ) == ()
    folders = header_folders.folders(found, Backend.CUDA, environ=environ, site_packages=tmp_path)
    assert folders == {"CUTLASS_SRC_DIR": tmp_path / "mine"}
    folders = header_folders.folders(found, Backend.CUDA, environ={}, site_packages=tmp_path)
    assert folders == {"CUTLASS_SRC_DIR": tmp_path / "cutlass_library/source"}


def test_a_named_folder_counts_by_its_content_and_not_by_its_path(tmp_path):
    found = config(tmp_path)
    write(tmp_path, {f"{name}/{path}": text for name in "abcd" for path, text in CUTLASS.items()})
    write(tmp_path, {"c/include/cutlass/cutlass.h": "// 3.9", "d/include/cutlass/new.h": ""})
    environs = [{"CUTLASS_SRC_DIR": str(tmp_path / name)} for name in "abcd"]
    first, same, edited, longer = (header_folders.digests(found, Backend.CUDA, environ=environ) for environ in environs)
    assert set(first) == {"CUTLASS_SRC_DIR"}
    assert same == first
    assert len({each["CUTLASS_SRC_DIR"] for each in (first, edited, longer)}) == 3
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
