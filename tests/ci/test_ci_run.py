"""`.ci/run` and `.ci/bare/check`: what goes on side by side; programs stand for roots, packages and tests."""

import os
import shutil
import time

import pytest

from tests.given import processes
from tests.given.files import program
from tests.paths import ROOT

pytestmark = pytest.mark.slow

WAIT = 'for _ in $(seq 400); do if grep -qs "$1" "$HOME/said"; then exit 0; fi; sleep 0.05; done; exit 9\n'
SAYS = '#!/bin/sh\necho "$(basename "$0") $*" >>"$HOME/said"\n'
ENTER = """root=$(basename "$1")
case "$root $4" in
  *sha256sum*) cat "$HOME/$root.sha256" ;;
  "bookworm make demo"*) eval "$BOOKWORM" ;;
  "sid make demo") eval "$SID" ;;
esac
"""
PASSED = "mkdir -p $1/root/builder/build; touch $1/root/builder/build/passed.json"


@pytest.fixture
def checkout(tmp_path):
    """A folder with the scripts, and programs that write their words down."""
    for script in ("run", "bare/check"):
        (tmp_path / ".ci" / script).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy2(ROOT / ".ci" / script, tmp_path / ".ci" / script)
    for name, text in {"enter": ENTER, "make": 'echo "roots/$1"\n', "copy": 'mkdir -p "$2"\n'}.items():
        program(tmp_path / ".ci/bare" / name, SAYS + text)
    for name in ("apt-get", "make", "nix", "unshare"):
        program(tmp_path / "bin" / name, SAYS + f'eval "${name.replace("-", "_").upper()}"\n')
    program(tmp_path / "bin/wait_for", f"#!/bin/sh\n{WAIT}")
    (tmp_path / "builder").symlink_to(ROOT / "builder")
    for root in ("bookworm", "sid"):
        (tmp_path / f"{root}.sha256").write_text("0" * 64, encoding="utf-8")
    return tmp_path


def run(checkout, script, **programs):
    """Run a script; each of `programs` is what one of them does besides."""
    environ = {"HOME": str(checkout), "TMPDIR": str(checkout), "PATH": f"{checkout}/bin:{os.environ['PATH']}"}
    done = processes.run("bash", checkout / ".ci" / script, check=None, env=environ | programs, timeout=100)
    return done, (checkout / "said").read_text(encoding="utf-8")


def test_sid_is_tried_while_the_tests_run_on_debian_12_and_said_after_them(checkout):
    done, said = run(
        checkout, "bare/check", BOOKWORM="wait_for 'enter .*/sid .*-m nix' && echo tested", SID="echo of sid"
    )
    assert done.returncode == 0, done.stdout
    assert said.index("/sid bash -euc make demo") < said.index("/bookworm bash -euc make nix")
    assert done.stdout.index("tested") < done.stdout.index("== Debian sid") < done.stdout.index("of sid")


@pytest.mark.parametrize(
    ("programs", "told"),
    [
        pytest.param({"SID": "echo broken; exit 1"}, "broken", id="a command on sid"),
        pytest.param(
            {"SID": "echo 0 >$HOME/sid.sha256"}, f"{'0' * 64} on Debian 12, 0 on Debian sid", id="another wheel"
        ),
        pytest.param({"BOOKWORM": "echo broken; exit 1"}, "broken", id="a command on Debian 12"),
    ],
)
def test_what_fails_in_a_bare_root_fails_the_check(checkout, programs, told):
    done, _ = run(checkout, "bare/check", **programs)
    assert done.returncode == 1
    assert told in done.stdout


def test_nothing_goes_on_where_debian_12_failed(checkout):
    began = time.monotonic()
    done, _ = run(checkout, "bare/check", BOOKWORM="wait_for '/sid .*make demo'; exit 1", SID="sleep 90")
    assert done.returncode == 1
    assert time.monotonic() - began < 60
    assert sorted(path.name for path in checkout.iterdir() if path.name.startswith("tmp.")) == []


def test_a_machine_that_makes_no_root_tests_itself(checkout):
    done, said = run(checkout, "run", UNSHARE="exit 1")
    assert done.returncode == 0, done.stderr
    words = [line for line in said.splitlines() if line.startswith("make ")]
    assert [line.split()[-1] for line in words] == [".venv/.setup-test", "test", "nix", "test-all"]
    assert "--passed-to=" in words[1]
    assert "--passed-before=" in words[3]


def test_packages_are_installed_while_the_bare_roots_are_tried(checkout):
    tested = f"wait_for 'apt-get install .*fish' && {PASSED}"
    done, said = run(checkout, "run", BOOKWORM=tested, MAKE='echo "requires $BUILDER_TESTS_REQUIRE"')
    assert done.returncode == 0, done.stderr
    assert "requires g++ binutils util-linux git python-headers" in done.stdout
    assert said.splitlines()[-1].startswith("make TEST_OPTIONS=-p tests.passed --passed-before=")


def test_a_package_that_has_to_be_there_ends_the_run_and_another_is_told(checkout):
    done, _ = run(checkout, "run", BOOKWORM=PASSED, APT_GET='case "$*" in *mold*) exit 1 ;; esac')
    assert done.returncode == 0, done.stderr
    assert "not installed: mold" in done.stdout
    (checkout / "said").unlink()
    done, said = run(
        checkout, "run", BOOKWORM=PASSED, APT_GET='case "$*" in *python3-venv*) echo gone >&2; exit 1 ;; esac'
    )
    assert done.returncode == 1
    assert "gone" in done.stdout
    assert "test-all" not in said
