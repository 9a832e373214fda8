"""What goes wrong around a build with Nix: it is killed, or a disk is full. It is said, and nothing is broken."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.given.files import edit
from tests.given.kernels import PLAIN_CELL
from tests.integration import compiling, nix_tools

builder, guarded = nix_tools.builder, nix_tools.guarded
plain, unbuilt = nix_tools.plain, nix_tools.unbuilt

pytestmark = [
    *nix_tools.needs_nix,
    pytest.mark.skipif(bool(nix_tools.why_not()), reason=nix_tools.why_not() or "-"),
]
is_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root makes a small disk")
SMALL_DISK = """
set -e
mkdir -p "$1"
mount -t tmpfs -o size="$2" tmpfs "$1"
shift 2
exec "$@"
"""


def on_a_small_disk(folder, size, *command, env=None, cwd):
    """Run a command that sees a small disk at `folder`; the mount is gone with it."""
    return subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", SMALL_DISK, "-", folder, size, *command],
        env={**os.environ, "PYTHONPATH": str(nix_tools.ROOT), **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def build(kernel):
    command = [sys.executable, "-m", "builder", "build", kernel, "--variant", PLAIN_CELL]
    return [*map(str, command), "--engine", "nix", "--package-set", "host"]


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda sign: sign.name)
def test_a_killed_build_leaves_nothing_and_the_next_one_works(builder, plain, tmp_path, sign):
    name = f"scale_{sign.name.lower()}.cpp"
    source = (plain / "csrc/scale.cpp").rename(plain / "csrc" / name)
    edit(plain / "build.toml", "csrc/scale.cpp", f"csrc/{name}")
    quick = source.read_text()
    source.write_text(quick + compiling.SLOW_TO_COMPILE)
    process = subprocess.Popen(
        build(plain),
        env={**os.environ, "PYTHONPATH": str(nix_tools.ROOT)},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # What a shell starts in the background ignores this signal, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs here
    )
    deadline = time.monotonic() + 120
    while not compiling.compilers_of(name) and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.1)
    os.kill(process.pid, sign)
    if sign is signal.SIGKILL:
        assert process.wait(60) == -sign
        process.stderr.close()
        for compiler in compiling.compilers_of(name):  # nobody was left to end them; Nix sees a failed build
            os.kill(compiler, signal.SIGKILL)
    else:
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 130, stderr
        assert "interrupted" in stderr
        assert "Traceback" not in stderr
        assert not compiling.compilers_of(name)
    assert not list(tmp_path.glob("dist/*"))
    source.write_text(quick)
    builder(plain, "--variant", PLAIN_CELL, check=0)
    assert sorted(path.suffix for path in (tmp_path / "dist").iterdir()) == [".json", ".whl"]


def offline(kernel, *, cwd, env=None):
    """Build on a machine without a network and without a folder of wheels."""
    return subprocess.run(
        ["unshare", "--net", *build(kernel)],
        env={**os.environ, "PYTHONPATH": str(nix_tools.ROOT), "PIP_FIND_LINKS": "", "PIP_RETRIES": "0", **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@is_root
def test_offline_a_new_kernel_builds_from_the_wheels_that_the_store_has(builder, plain, tmp_path):
    builder(plain, "--variant", PLAIN_CELL, check=0)
    source = plain / "csrc/scale.cpp"
    source.write_text("// another kernel with the same wheels\n" + source.read_text())
    done = offline(plain, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 built" in done.stderr


@is_root
def test_offline_without_the_wheels_is_said_with_their_names(unbuilt, guarded, tmp_path):
    done = offline(unbuilt, cwd=tmp_path, env={"NIX_REMOTE": f"local?root={guarded / 'root'}"})
    assert done.returncode == 4
    assert "cannot get the pinned wheel " in done.stderr
    assert "nix-store --add-fixed sha256 FILE" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("dist/*"))


@is_root
def test_a_full_disk_at_the_output_is_said_and_holds_no_half_wheel(builder, plain, tmp_path):
    listing = 'code=0; "$@" || code=$?; ls -A dist; exit $code'
    done = on_a_small_disk("dist", "4k", "sh", "-c", listing, "-", *build(plain), cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "cannot write 'dist/plain-" in done.stderr
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""  # neither a wheel nor a part of one
    builder(plain, "--variant", PLAIN_CELL, check=0)


@is_root
def test_a_full_disk_of_the_store_is_said(unbuilt, guarded, tmp_path):
    root = guarded / "root"
    done = on_a_small_disk(root, "1m", *build(unbuilt), env={"NIX_REMOTE": f"local?root={root}"}, cwd=tmp_path)
    assert done.returncode == 4, done.stderr
    assert "the disk of Nix's store is full" in done.stderr
    assert "nix-collect-garbage" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("dist/*"))
