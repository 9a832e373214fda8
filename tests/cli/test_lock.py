"""`builder lock`: the kernels of kernel-depends, from a folder and from the hub."""

import json
import shutil

import pytest

from builder.cli import run
from tests import kernel_hub
from tests.cli.folders import write
from tests.hub_folder import add, depend, kernel


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Give a folder with kernels, a kernel that depends on one of them, and a store."""
    monkeypatch.setenv("BUILDER_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("BUILDER_KERNELS", str(tmp_path / "kernels"))
    folder = tmp_path / "kernels"
    folder.mkdir()
    depend(write(tmp_path, "user"), "team/base")
    return folder


def locked(tmp_path):
    return {
        (
            entry["dependency"]["repo-id"],
            str(entry["dependency"].get("version", entry["dependency"].get("revision"))),
        ): (entry["lock"]["commit"])
        for entry in json.loads((tmp_path / "user/kernels.lock").read_text())
    }


def test_a_kernel_is_locked_with_all_that_its_variants_depend_on(place, tmp_path, capsys):
    deep = add(place, "team/deep", kernel("deep"))
    further = [{"repo-id": "team/deep", "version": 1}]
    base = add(place, "team/base", kernel("base", variants=("torch-cpu", "torch-cuda"), depends=further))
    assert run(["lock", str(tmp_path / "user")]) == 0
    assert locked(tmp_path) == {("team/base", "1"): base, ("team/deep", "1"): deep}
    assert capsys.readouterr().out.splitlines() == [
        f"+ 'team/base' (version 1) at {base[:7]}",
        f"+ 'team/deep' (version 1) at {deep[:7]}",
    ]
    assert run(["lock", str(tmp_path / "user"), "--check"]) == 0
    assert "2 locked kernels: all good" in capsys.readouterr().out
    text = (tmp_path / "user/kernels.lock").read_bytes()
    assert run(["lock", str(tmp_path / "user")]) == 0
    assert "nothing to change" in capsys.readouterr().out
    assert (tmp_path / "user/kernels.lock").read_bytes() == text


def test_a_new_commit_of_a_version_is_locked_anew_and_shown(place, tmp_path, capsys):
    old = add(place, "team/base", kernel())
    assert run(["lock", str(tmp_path / "user")]) == 0
    new = add(place, "team/base", kernel(init="ANSWER = 43\n"))
    assert run(["lock", str(tmp_path / "user"), "--check"]) == 0  # what is locked is still there, and right
    capsys.readouterr()
    assert run(["lock", str(tmp_path / "user")]) == 0
    assert f"! 'team/base' (version 1) from {old[:7]} to {new[:7]}" in capsys.readouterr().out
    assert locked(tmp_path) == {("team/base", "1"): new}


def test_a_branch_and_a_commit_are_locked_too_and_each_backend_counts(place, tmp_path):
    commit = add(place, "team/base", kernel(), refs=("dev",))
    user = write(tmp_path, "user", "cpu", "cuda", folder="other").rename(tmp_path / "new")
    shutil.rmtree(tmp_path / "user")
    user.rename(tmp_path / "user")
    text = (tmp_path / "user/build.toml").read_text() + "\n[general.cuda]\n"
    (tmp_path / "user/build.toml").write_text(text)
    depend(tmp_path / "user", "team/base@dev")
    depend(tmp_path / "user", f"team/base@{commit}", table="general.cuda")
    assert run(["lock", str(tmp_path / "user")]) == 0
    assert locked(tmp_path) == {("team/base", "dev"): commit, ("team/base", commit): commit}


def test_check_names_what_the_lock_lacks_and_what_it_has_for_nothing(place, tmp_path, capsys):
    add(place, "team/base", kernel())
    add(place, "team/other", kernel("other"))
    assert run(["lock", str(tmp_path / "user"), "--check"]) == 1
    assert "has no kernels.lock" in capsys.readouterr().err
    assert run(["lock", str(tmp_path / "user")]) == 0
    depend(tmp_path / "user", "team/other")
    config = tmp_path / "user/build.toml"
    both = config.read_text()
    lines = [line for line in both.splitlines() if not line.startswith("kernel-depends")]
    config.write_text("\n".join(lines))
    depend(tmp_path / "user", "team/other", "team/base")
    assert run(["lock", str(tmp_path / "user"), "--check"]) == 1
    assert "kernels.lock lacks 'team/other' (version 1)" in capsys.readouterr().err
    assert run(["lock", str(tmp_path / "user")]) == 0
    config.write_text("\n".join(lines))
    depend(tmp_path / "user", "team/other")
    assert run(["lock", str(tmp_path / "user"), "--check"]) == 1
    assert "has 'team/base' (version 1), which nothing depends on" in capsys.readouterr().err


def test_another_content_than_the_locked_one_is_refused_with_both_hashes(place, tmp_path, capsys):
    commit = add(place, "team/base", kernel())
    assert run(["lock", str(tmp_path / "user")]) == 0
    wanted = json.loads((tmp_path / "user/kernels.lock").read_text())[0]["lock"]["hash"]
    shutil.rmtree(tmp_path / "store")
    file = place / f"kernels--team--base/snapshots/{commit}/README.md"
    file.resolve().write_text("changed")
    assert run(["lock", str(tmp_path / "user"), "--check"]) == 4
    said = capsys.readouterr().err
    assert f"commit {commit} of 'team/base' is not what kernels.lock names" in said
    assert f"expected {wanted}" in said


def test_a_damaged_kernel_of_the_store_is_fetched_again(place, tmp_path, capsys):
    add(place, "team/base", kernel())
    assert run(["lock", str(tmp_path / "user")]) == 0
    (folder,) = (tmp_path / "store/kernels").iterdir()
    (folder / "README.md").write_text("changed")
    capsys.readouterr()
    assert run(["lock", str(tmp_path / "user"), "--check"]) == 0
    assert "fetching 'team/base'" in capsys.readouterr().err
    assert (folder / "README.md").read_text() == "# base\n"
    shutil.rmtree(place)
    assert run(["lock", str(tmp_path / "user"), "--check"]) == 0


@pytest.mark.usefixtures("place")
def test_what_is_not_in_the_folder_is_said_with_the_command_that_brings_it(tmp_path, capsys):
    assert run(["lock", str(tmp_path / "user")]) == 4
    said = capsys.readouterr().err
    assert "'team/base' (version 1) is not in" in said
    assert "hf download team/base --repo-type kernel --revision v1 --cache-dir FOLDER" in said
    assert not (tmp_path / "user/kernels.lock").exists()


def test_a_circle_is_refused(place, tmp_path, capsys):
    add(place, "team/base", kernel(depends=[{"repo-id": "team/back", "version": 1}]))
    add(place, "team/back", kernel("back", depends=[{"repo-id": "team/base", "version": 1}]))
    assert run(["lock", str(tmp_path / "user")]) == 2
    circle = "'team/base' (version 1) → 'team/back' (version 1) → 'team/base' (version 1)"
    assert circle in capsys.readouterr().err


def test_a_link_out_of_the_folder_is_refused(place, tmp_path, capsys):
    commit = add(place, "team/base", kernel())
    (tmp_path / "secret").write_text("secret")
    (place / f"kernels--team--base/snapshots/{commit}/more").symlink_to(tmp_path / "secret")
    assert run(["lock", str(tmp_path / "user")]) == 4
    assert "leads out of" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", "{", '{"kernel-depends": [{"repo-id": "../x", "version": 1}]}'])
def test_a_kernel_with_a_hostile_metadata_is_refused(place, tmp_path, capsys, content):
    add(place, "team/base", {**kernel(), "build/torch-cpu/metadata.json": content})
    assert run(["lock", str(tmp_path / "user")]) == 2
    assert "lock another commit of that kernel" in capsys.readouterr().err


def test_a_kernel_that_depends_on_none_has_nothing_to_lock(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("BUILDER_STORE", str(tmp_path / "store"))
    write(tmp_path, "user")
    assert run(["lock", str(tmp_path / "user")]) == 3
    assert run(["lock", str(tmp_path / "user"), "--check"]) == 0
    assert "nothing to lock" in capsys.readouterr().out


@pytest.mark.usefixtures("place")
def test_a_repository_that_cannot_be_one_is_refused(tmp_path, capsys):
    config = tmp_path / "user/build.toml"
    config.write_text(config.read_text().replace("team/base", "../../etc"))
    assert run(["lock", str(tmp_path / "user")]) == 2
    assert "'../../etc' is not a repository of the hub" in capsys.readouterr().err


@pytest.fixture
def hub(place, monkeypatch):  # noqa: ARG001  the kernel is there before
    """Serve one kernel as the hub does, and give its commit."""
    pytest.importorskip("huggingface_hub")
    monkeypatch.delenv("BUILDER_KERNELS")
    commit = "c" * 40
    with kernel_hub.serving({"team/base": (commit, kernel())}) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield commit


def test_the_hub_and_a_folder_give_the_same_hash(hub, place, tmp_path, monkeypatch):
    assert run(["lock", str(tmp_path / "user")]) == 0
    (of_hub,) = json.loads((tmp_path / "user/kernels.lock").read_text())
    assert of_hub["lock"]["commit"] == hub
    add(place, "team/base", kernel())
    monkeypatch.setenv("BUILDER_STORE", str(tmp_path / "other-store"))
    assert run(["lock", str(tmp_path / "user"), "--from-folder", str(place)]) == 0
    (of_folder,) = json.loads((tmp_path / "user/kernels.lock").read_text())
    assert of_folder["lock"]["hash"] == of_hub["lock"]["hash"]


@pytest.mark.usefixtures("hub")
def test_a_version_that_the_hub_has_not_and_a_hub_that_is_away_are_said(tmp_path, monkeypatch, capsys):
    config = tmp_path / "user/build.toml"
    config.write_text(config.read_text().replace("version = 1 }", "version = 7 }"))
    assert run(["lock", str(tmp_path / "user")]) == 4
    assert "the hub has no 'team/base' (version 7): it has no branch or tag 'v7'" in capsys.readouterr().err
    config.write_text(config.read_text().replace("team/base", "team/none"))
    assert run(["lock", str(tmp_path / "user")]) == 4
    assert "the hub has no kernel 'team/none'" in capsys.readouterr().err
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert run(["lock", str(tmp_path / "user")]) == 4
    said = capsys.readouterr().err
    assert "cannot be fetched from the hub" in said
    assert "BUILDER_KERNELS names a folder" in said
