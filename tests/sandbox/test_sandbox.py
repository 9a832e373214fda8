"""What a sandbox shows, how it ends, and how it is told that there is none."""

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from builder import kernel, matrix, sandbox
from builder.cli import run, view
from builder.engine.outcome import CellOutcome
from builder.make import wheel_record as record
from builder.make.build_report import BuildReport
from builder.matrix.variant import Variant
from builder.run import run as run_tool
from builder.sandbox import SandboxPaths, link_targets, prefixes_of
from tests.given import processes
from tests.paths import ROOT
from tests.wheels import make

ENTER = ROOT / "builder/sandbox/enter.py"
CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")

needs_sandbox = pytest.mark.skipif(
    sandbox.why_unavailable() is not None, reason=f"no sandbox here: {sandbox.why_unavailable()}"
)


def inside(script, visible=None, **options):
    command = sandbox.enclose(["/bin/sh", "-c", script], visible or SandboxPaths())
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_a_folder_that_is_shown_through_a_link_keeps_the_link_and_no_more(tmp_path):
    (tmp_path / "real/rocm-6/bin").mkdir(parents=True)
    (tmp_path / "rocm").symlink_to("real/rocm-6")
    plan = SandboxPaths(readable=(tmp_path / "rocm",)).plan()
    assert ("link", str(tmp_path / "rocm"), "real/rocm-6") in plan
    assert ("read", str(tmp_path / "real/rocm-6"), str(tmp_path / "real/rocm-6")) in plan
    assert str(tmp_path) not in [target for _, _, target in plan]


def test_what_is_not_there_and_the_whole_machine_are_not_shown(tmp_path):
    plan = SandboxPaths(readable=(tmp_path / "missing", Path("/"))).plan()
    assert {target for _, _, target in plan}.isdisjoint({"/", str(tmp_path / "missing")})


def test_of_a_program_in_a_home_only_the_folders_of_programs_are_shown():
    home = Path("/home/somebody")
    assert home / "tools" in prefixes_of(home / "tools/bin/g++", home=home)
    for folder in (home, home / ".local"):
        shown = prefixes_of(folder / "bin/g++", home=home)
        assert folder not in shown
        assert {folder / "bin", folder / "lib"} <= set(shown)


def test_the_parts_of_a_toolkit_that_are_links_are_shown_where_they_lead(tmp_path):
    (tmp_path / "math/lib").mkdir(parents=True)
    (tmp_path / "cuda/targets/include").mkdir(parents=True)
    (tmp_path / "cuda/include").symlink_to("targets/include")
    (tmp_path / "cuda/targets/lib").symlink_to("../../math/lib")
    assert list(link_targets(tmp_path / "cuda")) == [tmp_path / "math/lib"]


@needs_sandbox
def test_a_sandbox_has_no_home_no_network_and_no_rights():
    said = inside(
        "id -u; hostname; ls /home /root /mnt 2>/dev/null; grep -c : /proc/net/dev; grep CapEff /proc/self/status"
    )
    assert said.stdout.split() == ["1000", "builder", "1", "CapEff:", "0000000000000000"], said.stderr


@needs_sandbox
def test_nothing_of_the_system_can_be_written():
    for path in ("/usr/x", "/etc/passwd", "/x", "/proc/sys/kernel/core_pattern"):
        assert inside(f"echo x >> {path}").returncode != 0
    assert not Path("/usr/x").exists()


@needs_sandbox
def test_a_kernel_without_the_newer_call_gets_read_only_mounts_as_well(monkeypatch, tmp_path):
    old = tmp_path / "enter.py"
    old.write_text(ENTER.read_text().replace("_MOUNT_SETATTR = 0x8000, 442", "_MOUNT_SETATTR = 0x8000, 9999"))
    monkeypatch.setattr(sandbox, "_ENTER", old)
    assert inside("true").returncode == 0
    for path in ("/usr/x", "/x"):
        assert "Read-only file system" in inside(f"echo x > {path}").stderr


@needs_sandbox
@pytest.mark.parametrize("code", [0, 7, 125])
def test_a_command_ends_with_its_own_code(code):
    assert inside(f"exit {code}").returncode == code


@needs_sandbox
@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL], ids=lambda number: number.name)
def test_a_command_that_a_signal_ended_says_which(number):
    assert inside(f"kill -{number} $$").returncode == -number


@needs_sandbox
def test_the_memory_of_a_command_is_known():
    python = Path(sys.executable)
    visible = SandboxPaths(readable=prefixes_of(python, home=None))
    done = run_tool(sandbox.enclose([str(python), "-c", "x = b'x' * 300_000_000"], visible))
    assert done.returncode == 0, done.output
    # A child is a copy of this process at first, whose memory the system counts as its own.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert 300_000_000 < done.peak < 600_000_000 + own


@needs_sandbox
def test_all_have_ended_within_a_second_of_the_signal():
    mark = f"7.{os.getpid()}{time.monotonic_ns() % 10**9}"
    script = f"trap '' TERM; setsid sh -c 'sleep {mark}' & sleep {mark}"
    process = subprocess.Popen(
        sandbox.enclose(["/bin/sh", "-c", f"echo on; {script}"], SandboxPaths()),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        assert process.stdout.readline() == "on\n"
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=10)
        assert time.monotonic() - began < 8
    assert not any(mark in command for command in processes.running().values())


@needs_sandbox
def test_the_sandbox_ends_with_the_process_that_asked_for_it():
    mark = f"8.{os.getpid()}{time.monotonic_ns() % 10**9}"
    command = sandbox.enclose(["/bin/sleep", mark], SandboxPaths())
    script = f"import subprocess\nsubprocess.Popen({command!r})\nimport time\ntime.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        processes.until(lambda: ["/bin/sleep", mark] in processes.running().values())
        parent.kill()
    processes.until(lambda: ["/bin/sleep", mark] not in processes.running().values())


# Machines as they are met: one that allows no namespaces, and one that hides a part of /proc, as containers do.
FORBIDDEN = "echo 0 > /proc/sys/user/max_user_namespaces"
MASKED = "mount -t tmpfs none /proc/fs"


@needs_sandbox
@pytest.mark.parametrize(
    ("machine", "call"), [(FORBIDDEN, "unshare"), (MASKED, "mount /new/proc")], ids=["none", "/proc"]
)
def test_doctor_says_why_there_is_no_sandbox(machine, call, tmp_path):
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f'{machine} && exec "$@"', "sh"]
    done = subprocess.run(
        [*command, sys.executable, "-m", "builder", "doctor"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "BUILDER_STORE": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    line = next(line for line in done.stdout.splitlines() if line[4:].startswith("sandbox "))
    assert "missing" in line, done.stdout
    assert call in line


def outcome(*, sandboxed):
    cell = matrix.select(kernel.load(ROOT / "examples/relu").config, matrix.rows())[0]
    report = BuildReport.from_json({"sandbox": sandboxed, "ops": {"_relu_1::relu": ["CPU"]}})
    return CellOutcome(cell=cell, status="built", wheel=Path("a.whl"), reason="first", report=report)


def test_an_unsandboxed_build_says_so_in_its_line_and_in_the_summary():
    assert view.line_of(outcome(sandboxed=False)).endswith("; unsandboxed")
    assert "unsandboxed" not in view.line_of(outcome(sandboxed=True))
    said = view.summary((outcome(sandboxed=False), outcome(sandboxed=True)))
    assert said.splitlines()[0] == "2 built, 1 unsandboxed"
    assert "builder doctor" in said
    assert "unsandboxed" not in view.summary((outcome(sandboxed=True),))


@pytest.fixture
def dist(tmp_path):
    folder = tmp_path / "dist"
    folder.mkdir()
    make(folder, "relu", CPU)
    return folder


def recorded(dist, *, sandboxed):
    (wheel,) = dist.glob("*.whl")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    record.write(wheel, sha256=digest, variant=str(CPU), report=outcome(sandboxed=sandboxed).report)
    return wheel


def test_a_site_of_unsandboxed_wheels_is_published_only_at_a_word(dist, tmp_path, capsys):
    wheel = recorded(dist, sandboxed=False)
    site, target = tmp_path / "site", tmp_path / "www"
    assert run(["index", str(dist), "--output", str(site)]) == 0
    assert run(["publish", str(site), str(target)]) == 6
    assert f"error: built without a sandbox: {wheel.name}" in capsys.readouterr().err
    assert not target.exists()
    assert run(["publish", str(site), str(target), "--allow-unsandboxed"]) == 0
    recorded(dist, sandboxed=True)
    assert run(["index", str(dist), "--output", str(site)]) == 0
    assert run(["publish", str(site), str(target)]) == 0
    assert (
        record.sandboxed(target / "files" / wheel.name, sha256=hashlib.sha256(wheel.read_bytes()).hexdigest()) is True
    )


def test_a_layout_of_unsandboxed_wheels_reaches_the_hub_only_at_a_word(dist, tmp_path, capsys):
    wheel, build = recorded(dist, sandboxed=False), tmp_path / "build"
    assert run(["bundle", str(wheel), "--output", str(build)]) == 0
    assert json.loads((build / str(CPU) / "metadata.json").read_text())["provenance"]["sandbox"] is False
    assert run(["publish", str(build), "hub:team/relu"]) == 6
    assert f"error: built without a sandbox: {CPU}" in capsys.readouterr().err


@pytest.mark.parametrize("sandboxed", [True, False])
def test_a_statement_says_whether_there_was_a_sandbox(dist, sandboxed):
    wheel = recorded(dist, sandboxed=sandboxed)
    assert run(["attest", str(wheel)]) == 0
    stated = json.loads(wheel.with_name(f"{wheel.name}.intoto.json").read_text())
    assert stated["predicate"]["buildDefinition"]["internalParameters"]["sandbox"] is sandboxed


def test_a_statement_of_a_wheel_without_a_record_says_nothing_of_it(dist):
    (wheel,) = dist.glob("*.whl")
    assert run(["attest", str(wheel)]) == 0
    stated = json.loads(wheel.with_name(f"{wheel.name}.intoto.json").read_text())
    assert "sandbox" not in stated["predicate"]["buildDefinition"]["internalParameters"]
