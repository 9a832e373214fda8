"""No small file costs its reader more than 5 seconds or 512 MiB, and none that does is called right."""

import hashlib
import io
import json
import os
import signal
import struct
import subprocess
import sys
import zipfile

import pytest

from builder import audit
from builder.audit import limited, reading
from builder.errors import BugError
from builder.matrix.variant import Variant
from builder.wheel.archive import Bytes, Wheel, pack
from tests import hostile
from tests.audit.conftest import demo_wheel
from tests.wheels import make as make_wheel
from tests.wheels import package

SECONDS, MEMORY = 30, 512 << 20
CLASSIC = {"label": "torch213.cxx11.cpu", "requires": "torch==2.13.*"}
INFO = "demo-1.0.0+torch.stable210.cpu.dist-info"
WHEEL = "demo-1.0.0+torch.stable210.cpu-cp39-abi3-manylinux_2_28_x86_64.whl"


# In a process between: the peak of a child counts from that of its parent, and these tests make large libraries.
MEASURE = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=2)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(json.dumps([process.returncode, usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10]))
"""


def run(*arguments, cwd):
    """Run a command and return its exit code, what it wrote, and the seconds and bytes that it took."""
    command = [sys.executable, "-c", MEASURE, sys.executable, "-m", "builder", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=True)
    code, seconds, memory = json.loads(done.stdout)
    return code, done.stderr, seconds, memory


def within_bounds(code, text, seconds, memory):
    assert "Traceback" not in text
    assert seconds < SECONDS
    assert memory < MEMORY
    return code


LONG = {
    "many_symbols", "code_of_aarch64", "tags", "chain", "buckets", "relocations", "bundles", "packed_bombs", "images",
    "magics", "cubin_sections",
}  # fmt: skip
"""What takes the audit one to three seconds."""


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=[pytest.mark.slow] * (name in LONG))
        for name, make in hostile.LIBRARIES.items()
    ],
)
def test_a_small_wheel_cannot_exhaust_the_audit(tmp_path, make):
    options = CLASSIC if make is hostile.versions else {}
    path = demo_wheel(tmp_path, library=make(), **options)
    assert path.stat().st_size < 500_000
    assert within_bounds(*run("audit", path, cwd=tmp_path)) == 5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["many_symbols", "relocations", "cubin_sections"])
def test_a_small_wheel_cannot_exhaust_an_index(tmp_path, name):
    cuda = Variant.parse("torch213-cxx11-cu130-x86_64-linux")
    library = Bytes(hostile.LIBRARIES[name]())
    make_wheel(tmp_path, "demo", cuda, files=package("demo", cuda, more={"_demo.abi3.so": library}))
    assert within_bounds(*run("index", tmp_path, "--output", tmp_path / "site", cwd=tmp_path)) == 0


def stored(path, members, *, compress=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compress) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "command", ["audit", *(pytest.param(each, marks=pytest.mark.slow) for each in ("bundle", "attest"))]
)
def test_an_archive_that_unpacks_to_more_than_a_wheel_does_is_refused(tmp_path, command):
    path = stored(tmp_path / WHEEL, {f"demo/{number}.txt": bytes(64 << 20) for number in range(5)})
    assert path.stat().st_size < 500_000
    result = run(command, path, cwd=tmp_path)
    assert within_bounds(*result) == 2
    assert "unpacks to 335544320, more than the 268435456 that are read" in result[1]


@pytest.mark.parametrize(
    "command", ["audit", *(pytest.param(each, marks=pytest.mark.slow) for each in ("bundle", "attest"))]
)
def test_the_largest_archive_that_is_read_takes_little(tmp_path, command):
    path = demo_wheel(tmp_path, package={"zeros.txt": bytes(196 << 20)})
    within_bounds(*run(command, path, cwd=tmp_path))


def test_many_members_are_refused(tmp_path):
    path = stored(tmp_path / WHEEL, {f"demo/{number}": b"" for number in range(9_000)}, compress=zipfile.ZIP_STORED)
    assert within_bounds(*run("audit", path, cwd=tmp_path)) == 2


@pytest.mark.parametrize("command", ["audit", "attest"])
def test_as_many_members_as_are_read_take_little(tmp_path, command):
    path = demo_wheel(tmp_path, package={f"{number}.txt": b"" for number in range(8_000)})
    within_bounds(*run(command, path, cwd=tmp_path))


def test_findings_without_end_are_cut_off_and_the_wheel_is_not_right(tmp_path):
    names = b"".join(b"Py_%d\0" % number for number in range(20_000))
    offsets = [1]
    for name in names.split(b"\0")[:-2]:
        offsets.append(offsets[-1] + len(name) + 1)
    library = hostile.with_symbols(b"\0" + names, offsets)
    report = audit.run(Wheel.read(demo_wheel(tmp_path, library=library)))
    assert len(report.findings) == 10_001
    assert [finding.symbol for finding in report.findings if finding.rule == "budget"] == ["findings"]


def small(tmp_path):
    return demo_wheel(tmp_path, label="torch.cpu", tag="py3-none-any", requires="torch")


def burn(_, **_given):
    while True:
        hashlib.sha256(b"").digest()


def hoard(_, **_given):
    found = []
    while True:
        found.append(bytes(1 << 20))


@pytest.mark.parametrize(("waste", "what"), [(burn, "processor time"), (hoard, "memory")])
def test_what_no_budget_foresees_ends_in_a_finding(tmp_path, monkeypatch, waste, what):
    monkeypatch.setattr(limited, "run", waste)
    monkeypatch.setattr(limited, "_SECONDS", 1)
    report = limited.run_limited(small(tmp_path)).report
    assert not report.ok
    assert [(finding.rule, finding.symbol) for finding in report.findings] == [("budget", what)]


def test_a_reader_that_the_system_kills_does_not_say_that_a_wheel_is_right(tmp_path, monkeypatch):
    monkeypatch.setattr(limited, "run", lambda _, **_given: os.kill(os.getpid(), signal.SIGKILL))
    assert not limited.run_limited(small(tmp_path)).report.ok


def test_a_bug_of_a_reader_is_shown_and_not_called_a_finding(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(limited, "run", lambda _, **_given: {}["bug"])
    with pytest.raises(BugError):
        limited.run_limited(small(tmp_path))
    assert "KeyError: 'bug'" in capfd.readouterr().err


def test_a_wheel_judged_apart_has_the_report_of_one_judged_here(tmp_path):
    path = demo_wheel(tmp_path, library=hostile.elf(), package={"a.o": b""})
    assert limited.run_limited(path).report == audit.run(Wheel.read(path))


def test_a_library_is_found_in_an_archive_that_gives_its_bytes_one_by_one(tmp_path):
    """Blocks of deflate that hold nothing make the first piece as short as its maker likes."""
    content, empty = hostile.elf(), b"\0\0\0\xff\xff"
    blocks = b"".join(empty * 60_000 + b"\0" + struct.pack("<HH", 1, 0xFFFE) + content[i : i + 1] for i in range(4))
    rest = content[4:]
    blocks += b"\1" + struct.pack("<HH", len(rest), len(rest) ^ 0xFFFF) + rest
    path = tmp_path / WHEEL
    path.write_bytes(pack({"demo/weights.bin": Bytes(content)}, dist_info=INFO))
    path.write_bytes(_with_data(path.read_bytes(), "demo/weights.bin", blocks))
    assert [library.name for library in reading.read(Wheel.read(path), plan=audit.AuditPromise()).libraries] == [
        "demo/weights.bin"
    ]


def _with_data(archive, name, data):
    """Return an archive whose first member, `name`, has other compressed data of the same content."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        info = opened.getinfo(name)
    start = 30 + len(name)
    changed = bytearray(archive[:start] + data + archive[start + info.compress_size :])
    more = len(data) - info.compress_size
    struct.pack_into("<I", changed, 18, len(data))
    directory = changed.index(b"PK\x01\x02")
    struct.pack_into("<I", changed, directory + 20, len(data))
    following = changed.index(b"PK\x01\x02", directory + 4)
    struct.pack_into("<I", changed, following + 42, struct.unpack_from("<I", changed, following + 42)[0] + more)
    end = changed.index(b"PK\x05\x06")
    struct.pack_into("<I", changed, end + 16, struct.unpack_from("<I", changed, end + 16)[0] + more)
    return bytes(changed)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_what_the_caller_holds_itself_is_not_counted(tmp_path, monkeypatch):
    original = limited.run

    def judge(wheel, **given):
        assert bytes(limited._MEMORY // 2)  # noqa: SLF001
        return original(wheel, **given)

    monkeypatch.setattr(limited, "run", judge)
    held = bytearray(2 * limited._MEMORY)  # noqa: SLF001
    assert not [each for each in limited.run_limited(small(tmp_path)).report.findings if each.rule == limited.BUDGET]
    assert held
