"""The package set of the machine's own tools, and the settings with which Nix can use them; without Nix."""

import grp
import os
import subprocess
from pathlib import Path

import pytest

from builder import init, toml
from builder.config.values import Backend, Framework, KernelName
from builder.engine import nix_command
from builder.init import files as written
from tests.paths import ROOT

HOST = ROOT / "builder/nix/host"
SETTINGS = toml.loads((HOST / "host.toml").read_text(encoding="utf-8"))


def python(folder, version):
    """Make a stand-in for a Python of a version."""
    path = folder / f"python{version}"
    path.write_text(f"#!/bin/sh\necho cp{version.replace('.', '')}\n")
    path.chmod(0o755)
    return path


def here(*arguments):
    return subprocess.run(["sh", HOST / "here", *arguments], capture_output=True, text=True, check=False)


def test_a_copy_of_the_package_set_has_the_pythons_that_are_named(tmp_path):
    found = [python(tmp_path, version) for version in ("3.13", "3.14")]
    done = here(tmp_path / "copy", *found)
    assert done.returncode == 0, done.stderr
    copied = toml.loads((tmp_path / "copy/host.toml").read_text(encoding="utf-8"))
    assert copied["pythons"] == {"cp313": str(found[0]), "cp314": str(found[1])}
    assert {key: copied[key] for key in copied if key != "pythons"} == {
        key: SETTINGS[key] for key in SETTINGS if key != "pythons"
    }
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {"default.nix", "flake.nix", "host.toml"}


def test_a_machine_without_a_python_is_told(tmp_path):
    done = here(tmp_path / "copy", tmp_path / "python3.13")
    assert done.returncode == 1
    assert "no Python among" in done.stderr


def test_nothing_that_nix_shows_by_itself_is_inside_what_the_sandbox_shows():
    """Nix 2.34 writes into what is shown: with /etc/ssl it empties the machine's own file of certificates."""
    shown = [path.partition("=")[0].removesuffix("?") for path in SETTINGS["sandbox-paths"]]
    for path in ("/bin/sh", "/etc/ssl/certs/ca-certificates.crt", "/etc/passwd", "/etc/resolv.conf"):
        assert not [folder for folder in shown if path.startswith(f"{folder}/")], path


def test_the_guide_names_the_paths_that_the_package_set_names():
    guide = (ROOT / "docs/nix.md").read_text(encoding="utf-8")
    paths = " ".join(SETTINGS["sandbox-paths"])
    assert guide.count(f"--option extra-sandbox-paths '{paths}'") == 1
    assert guide.count(f"\nextra-sandbox-paths = {paths}\n") == 1


@pytest.mark.parametrize(
    ("uid", "group", "config", "options"),
    [
        pytest.param(0, False, "", ("--option", "build-users-group", ""), id="root, no group"),
        pytest.param(0, True, "", (), id="root, and the group of an installer"),
        pytest.param(0, False, "build-users-group = mine", (), id="root, another group"),
        pytest.param(1000, False, "", (), id="a user"),
    ],
)
def test_root_builds_as_itself_only_where_there_is_no_group_of_users(uid, group, config, options, monkeypatch):
    def getgrnam(name):
        assert name == "nixbld"
        if not group:
            raise KeyError(name)

    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(grp, "getgrnam", getgrnam)
    monkeypatch.setattr(nix_command, "CONFIG", Path("/nonexistent/nix.conf"))
    assert nix_command.building_users({"NIX_CONFIG": config}) == options


def test_the_template_of_the_flake_is_what_init_writes():
    template = ROOT / "builder/nix/template"
    asked = init.Answers(
        name=KernelName("my-kernel"),
        framework=Framework.TORCH,
        backends=(Backend.CPU,),
        license="Apache-2.0",
        ci=None,
    )
    files = {
        path.relative_to(template).as_posix(): path.read_text(encoding="utf-8")
        for path in template.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert files == written(asked)
