"""What the Nix engine makes of Nix's words: its log told apart by derivation, its errors explained."""

import json

import pytest

from builder.engine.nix_command import Nix, NixLog, name_of, plain
from builder.run import Processes

DRV = "/nix/store/0jh8i4xaqkc2wkqxnb73qyh52lll6jy3-tiny-torch-cpu.drv"
OTHER = "/nix/store/1jh8i4xaqkc2wkqxnb73qyh52lll6jy3-environment-cp311.drv"


def said(log, **event):
    return log.take("@nix " + json.dumps(event))


def build(log, drv, number):
    return said(log, action="start", id=number, level=3, type=105, text="building", fields=[drv, "", 1, 1])


def test_lines_of_builds_side_by_side_are_told_apart():
    log = NixLog()
    started = build(log, DRV, 1)
    assert (started.drv, started.text, started.started) == (DRV, "tiny-torch-cpu", True)
    build(log, OTHER, 2)
    first = said(log, action="result", id=1, type=101, fields=["\x1b[31mred\x1b[0m"])
    second = said(log, action="result", id=2, type=101, fields=["installing"])
    assert (first.drv, first.text) == (DRV, "red")
    assert (second.drv, second.text) == (OTHER, "installing")
    assert log.built == {DRV, OTHER}


def test_a_build_that_ended_says_no_more():
    log = NixLog()
    build(log, DRV, 1)
    said(log, action="stop", id=1)
    assert said(log, action="result", id=1, type=101, fields=["late"]) is None


@pytest.mark.parametrize(
    "message",
    [
        pytest.param("builder for '\x1b[35;1m{DRV}\x1b[0m' failed with exit code 5;\nlast 1 log lines:", id="2.8"),
        pytest.param(
            "Cannot build '\x1b[35;1m{DRV}\x1b[0m'.\n       Reason: \x1b[31;1mbuilder failed with exit code 5\x1b[0m.\n"
            "       Output paths:\n         /nix/store/x",
            id="2.34",
        ),
    ],
)
def test_an_exit_code_is_kept_with_its_derivation(message):
    log = NixLog()
    message = f"\x1b[31;1merror:\x1b[0m {message.replace('{DRV}', DRV)}"
    said(log, action="msg", level=0, msg=message, raw_msg="builder failed")
    assert log.codes == {DRV: 5}
    assert log.errors == ["builder failed"]


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("unexpected end-of-file", True),
        ("writing to file: Broken pipe", True),
        ("builder for '/nix/store/x.drv' failed with exit code 4", False),
    ],
)
def test_a_builder_that_went_away_is_told_from_one_that_failed(text, lost):
    log = NixLog()
    said(log, action="msg", level=0, msg=f"error: {text}", raw_msg=text)
    assert log.lost == lost


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("@nix {not json", id="not json"),
        pytest.param('@nix {"action":"start","id":1,"type":105,"fields":[]}', id="no fields"),
        pytest.param('@nix {"action":"result","id":7,"type":101,"fields":["x"]}', id="of nothing that started"),
        pytest.param('@nix {"action":"start","id":1,"type":101}', id="a download"),
        pytest.param("", id="empty"),
    ],
)
def test_what_says_nothing_of_a_build_is_passed_over(line):
    assert NixLog().take(line) is None


def test_names_and_colours():
    assert name_of(DRV) == "tiny-torch-cpu"
    assert plain("\x1b[35;1mx\x1b[0m") == "x"


NIX = Nix(program="nix", environ={}, processes=Processes(), package_set="host")


@pytest.mark.parametrize(
    ("output", "message", "remedy"),
    [
        pytest.param(
            "error: unable to download 'https://github.com/NixOS/nixpkgs/x.tar.gz': Couldn't resolve host name (6)",
            "nixpkgs cannot be fetched from here",
            "--package-set host",
            id="nixpkgs",
        ),
        pytest.param(
            "error: experimental Nix feature 'flakes' is disabled; use '--extra-experimental-features'",
            "does not allow the features",
            "experimental-features = nix-command flakes",
            id="flakes are off",
        ),
        pytest.param(
            "error: this system does not support the kernel namespaces that are required for sandboxing",
            "cannot build in Nix's sandbox, which a release needs",
            "--allow-unsandboxed",
            id="no sandbox",
        ),
        pytest.param(
            "error: writing to file: No space left on device",
            "the disk of Nix's store is full",
            "nix-collect-garbage",
            id="full disk",
        ),
        pytest.param(
            "error: setting journal mode: database or disk is full",
            "the disk of Nix's store is full",
            "nix-collect-garbage",
            id="full disk of its database",
        ),
        pytest.param(
            "error: getting attributes of path '/opt/tools': No such file or directory",
            "told to show a path that is not there",
            "extra-sandbox-paths",
            id="sandbox path",
        ),
        pytest.param(
            "error: executing '/usr/bin/bash': No such file or directory",
            "does not show the shell of the package set",
            "'trusted-users'",
            id="a user whom the daemon does not trust",
        ),
        pytest.param("error: something new\n  at line 3", "Nix failed: something new", None, id="unknown"),
    ],
)
def test_an_error_of_nix_is_explained_and_quoted(output, message, remedy):
    error = NIX.explain(f"warning: Git tree is dirty\n{output}")
    assert message in error.message
    assert error.exit_code == 4
    assert (error.help is None) if remedy is None else (remedy in error.help)
    assert "dirty" not in str(error)
    assert output.removeprefix("error: ").splitlines()[0] in error.message


def test_a_release_asks_for_the_sandbox_whatever_nix_conf_says():
    options = list(NIX.options)
    assert options[options.index("sandbox") + 1] == "true"
    assert options[options.index("sandbox-fallback") + 1] == "false"
    assert "/usr" in options[options.index("extra-sandbox-paths") + 1].split()


def test_pips_settings_reach_nix_under_the_names_of_pip():
    nix = Nix(
        program="nix",
        environ={"UV_DEFAULT_INDEX": "https://mirror.test/simple", "PIP_CONFIG_FILE": "/dev/null"},
        processes=Processes(),
    )
    assert nix.variables()["PIP_INDEX_URL"] == "https://mirror.test/simple"
