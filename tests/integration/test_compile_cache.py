"""The cache of compiled files in real builds: what is compiled again, and that the bytes stay the same."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builder.compile_cache.caches import Caches
from builder.compile_cache.folder import Entry, Folder
from builder.compile_cache.session import Session, answering
from builder.toolchain import this_machine
from builder.toolchain.tool import Search
from tests import needs
from tests.given.files import edit
from tests.given.kernels import PLAIN_CELL
from tests.integration import compiling
from tests.paths import ROOT

TINY = ROOT / "tests/data/kernels/tiny"
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"
BINDING, SOURCE = "torch-ext/torch_binding.cpp", "csrc/twice.cpp"

pytestmark = [
    pytest.mark.torch,
    pytest.mark.cmake,
    pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="pinned for x86_64-linux"),
]


@pytest.fixture(scope="session")
def environments(tmp_path_factory):
    """The environments of the store that the tests of a run share: made under its lock, which other stores have not."""
    base = tmp_path_factory.getbasetemp()
    store = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "store"
    command = [sys.executable, "-m", "builder", "build", TINY, "--variant", VARIANT, "--store", store, "--quiet"]
    command += ["--output", tmp_path_factory.mktemp("dist")]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, check=True)
    return store / "environments"


@pytest.fixture
def kernel(tmp_path):
    return Path(shutil.copytree(TINY, tmp_path / "tiny"))


class Machine:
    """A machine with a store of its own, and the environments that others have made."""

    def __init__(self, folder, environments):
        self.store, self.output = folder / "store", folder / "dist"
        self.store.mkdir(parents=True)
        for name in ("environments", "locks"):
            (self.store / name).symlink_to(environments.with_name(name))

    def command(self, kernel, *options):
        cell = PLAIN_CELL if kernel.name == "plain" else VARIANT
        command = [sys.executable, "-m", "builder", "build", kernel, "--variant", cell, "--json", "--rebuild"]
        return [*map(str, command), "--output", str(self.output), *options]

    def run(self, kernel, *options, env=None):
        done = subprocess.run(
            self.command(kernel, *options), env=self.env | (env or {}), capture_output=True, text=True, check=False
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    @property
    def env(self):
        return {**os.environ, "BUILDER_STORE": str(self.store), "PYTHONPATH": str(ROOT)}

    def build(self, kernel, *options, env=None):
        """Build, and return what came of it."""
        done = self.run(kernel, *options, env=env)
        assert done.returncode == 0, done.stderr
        (result,) = json.loads(done.stdout)
        return Build(result, done.stderr)


class Build:
    """A build: its digest, and the sources that were compiled and that came from a cache."""

    def __init__(self, result, said):
        self.sha256, self.said, self.notes = result["sha256"], said, result["notes"]
        own = [
            (re.sub(r"CMakeFiles/_(?:tiny|plain)[^/]*\.dir/(.+)\.o", r"\1", file["output"]), file.get("cache"))
            for file in result["report"]["files"]
            if re.match(r"CMakeFiles/_(?:tiny|plain).*\.o$", file["output"])
        ]
        named = [(name, cache) for name, cache in own if name != "ops_name.cpp"]
        self.compiled = {name for name, cache in named if cache is None}
        self.cached = {name: cache for name, cache in named if cache is not None}


@pytest.fixture
def machine(tmp_path, environments):
    return Machine(tmp_path / "machine", environments)


def test_an_edit_of_python_compiles_nothing_and_gives_the_bytes_of_a_build_without_cache(machine, plain):
    sources = {"csrc/answer.cpp", "csrc/scale.cpp"}
    assert machine.build(plain).compiled == sources
    with (plain / "ctypes-ext/plain/__init__.py").open("a") as file:
        file.write("# changed\n")
    warm = machine.build(plain)
    assert (warm.compiled, warm.cached) == (set(), dict.fromkeys(sources, "store"))
    assert re.search(r"0 of \d+ files compiled; from caches: \d+ of the store, which saved [\d.]+ s", warm.said)
    without = machine.build(plain, "--no-cache")
    assert without.compiled == sources
    assert without.sha256 == warm.sha256


@pytest.mark.slow
def test_an_edited_header_compiles_what_includes_it(machine, kernel):
    first = machine.build(kernel)
    edit(kernel / "csrc/factor.h", "2.0f", "3.0f")
    second = machine.build(kernel)
    assert SOURCE in second.compiled
    why = subprocess.run(
        [sys.executable, "-m", "builder", "why", kernel / "csrc/factor.h", "--variant", VARIANT],
        env=machine.env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(rf"^{VARIANT}: {SOURCE}: compiled in [\d.]+ s; changed: csrc/factor.h$", why.stdout, re.MULTILINE)
    assert second.sha256 != first.sha256
    edit(kernel / "csrc/factor.h", "3.0f", "2.0f")
    back = machine.build(kernel)
    assert (back.compiled, back.sha256) == (set(), first.sha256)


@pytest.mark.slow
def test_a_new_header_that_hides_another_one_is_seen(machine, kernel):
    (kernel / "csrc/twice.cpp").write_text("#include <hidden/factor.h>\n" + (kernel / "csrc/twice.cpp").read_text())
    edit(
        kernel / "build.toml", '"csrc/twice.h"]', '"csrc/twice.h", "late/hidden/factor.h"]\ninclude = ["early", "late"]'
    )
    (kernel / "late/hidden").mkdir(parents=True)
    (kernel / "late/hidden/factor.h").write_text("// nothing yet\n")
    machine.build(kernel)
    (kernel / "early/hidden").mkdir(parents=True)
    (kernel / "early/hidden/factor.h").write_text("constexpr int A_NEW_HEADER = sizeof(char[1]);\n#error found\n")
    edit(kernel / "build.toml", '"csrc/twice.h", ', '"csrc/twice.h", "early/hidden/factor.h", ')
    done = machine.run(kernel)
    assert done.returncode != 0
    assert "#error found" in done.stderr


@pytest.mark.slow
def test_a_file_that_the_assembler_reads_is_seen(machine, kernel):
    asm = 'asm(".section .rodata\\nblob: .incbin \\"/tmp/builder/src/csrc/blob.bin\\"\\n.text");\n'
    (kernel / "csrc/twice.cpp").write_text(asm + (kernel / "csrc/twice.cpp").read_text())
    edit(kernel / "build.toml", '"csrc/twice.h"]', '"csrc/twice.h", "csrc/blob.bin"]')
    digests = []
    for content in (b"one", b"two"):
        (kernel / "csrc/blob.bin").write_bytes(content)
        cached = machine.build(kernel)
        assert cached.sha256 == machine.build(kernel, "--no-cache").sha256
        digests.append(cached.sha256)
    assert digests[0] != digests[1]


@pytest.mark.slow
def test_the_time_of_the_build_in_a_source_is_seen(machine, kernel):
    edit(
        kernel / "csrc/twice.cpp",
        '#include "twice.h"',
        '#include "twice.h"\nextern "C" const char *when() { return __DATE__ __TIME__; }',
    )
    digests = [machine.build(kernel, env={"SOURCE_DATE_EPOCH": str(epoch)}).sha256 for epoch in (10**9, 10**9 + 60)]
    digests += [
        machine.build(kernel, "--no-cache", env={"SOURCE_DATE_EPOCH": str(epoch)}).sha256
        for epoch in (10**9, 10**9 + 60)
    ]
    assert digests[:2] == digests[2:]
    assert digests[0] != digests[1]


@pytest.mark.slow
def test_damaged_entries_are_compiled_again(machine, kernel):
    first = machine.build(kernel)
    for number, path in enumerate(sorted((machine.store / "compiled").glob("*/*"))):
        content = bytearray(path.read_bytes())
        if number % 2:
            content[len(content) // 2] ^= 0xFF
            path.write_bytes(content)
        else:
            path.write_bytes(content[: len(content) // 2])
    second = machine.build(kernel)
    assert (second.compiled, second.sha256) == ({BINDING, SOURCE}, first.sha256)


@pytest.fixture
def foreign(tmp_path):
    """What ccache keeps for an object of another architecture."""
    source = tmp_path / "foreign.c"
    source.write_text("int answer(void) { return 42; }\n")
    folder = Folder(root=tmp_path / "foreign")
    session = Session(caches=Caches(local=folder))
    program = this_machine.find_ccache(Search(environ=os.environ, digest=str))
    env = {**os.environ, "CCACHE_REMOTE_STORAGE": f"crsh:{tmp_path / 'socket'}", "CCACHE_REMOTE_ONLY": "1"}
    with answering(tmp_path / "socket", session.client):
        compiler = needs.program("gcc")
        done = subprocess.run(
            [program, compiler, "-m32", "-c", source, "-o", tmp_path / "foreign.o"], env=env, check=False
        )
    if done.returncode != 0:
        pytest.skip("the compiler has no -m32, and so no other architecture to make an object of")
    entries = [folder.get(path.name) for path in (tmp_path / "foreign").glob("*/*")]
    return next(entry.value for entry in entries if entry.holds_object)


@pytest.mark.slow
def test_objects_of_another_architecture_are_not_linked_but_compiled(machine, kernel, foreign):
    first = machine.build(kernel)
    cache = Folder(root=machine.store / "compiled")
    for path in (machine.store / "compiled").glob("*/*"):
        if cache.get(path.name).holds_object:
            cache.put(path.name, Entry(value=foreign))
    second = machine.build(kernel)
    assert (second.compiled, second.sha256) == ({BINDING, SOURCE}, first.sha256)
    assert "could not be linked, so all were compiled here" in second.said
    assert machine.build(kernel).sha256 == first.sha256


@pytest.mark.slow
def test_a_full_disk_is_told_once_and_fails_nothing(machine, kernel):
    alone = ("unshare", "--user", "--map-root-user", "--mount", "--")
    if subprocess.run([*alone, "true"], check=False).returncode != 0:
        pytest.skip("this kernel allows no user namespaces, which a small disk of its own is mounted in")
    (machine.store / "compiled").mkdir()
    script = 'mount -t tmpfs -o size=24k none "$1"; shift; exec "$@"'
    done = subprocess.run(
        [*alone, "sh", "-euc", script, "-", machine.store / "compiled", *machine.command(kernel)],
        env=machine.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("compiled files are not kept") == 1
    assert "No space left on device" in done.stderr
    assert json.loads(done.stdout)[0]["sha256"] == machine.build(kernel, "--no-cache").sha256


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda sign: sign.name)
def test_what_is_finished_when_a_build_is_stopped_is_not_compiled_again(machine, kernel, sign):
    (kernel / "csrc/slow.cpp").write_text(compiling.SLOW_TO_COMPILE)
    edit(kernel / "build.toml", '"csrc/twice.cpp", ', '"csrc/twice.cpp", "csrc/slow.cpp", ')
    process = subprocess.Popen(
        machine.command(kernel, "--jobs", "2"),
        env=machine.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # What a shell starts in the background ignores Ctrl-C, and so do its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  no thread runs here
    )
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and len(list((machine.store / "compiled").glob("*/*"))) < 4:
            time.sleep(0.1)
        process.send_signal(sign)
        assert process.wait(timeout=30) != 0
    finally:
        process.kill()
        process.wait()
    verified = subprocess.run(
        [sys.executable, "-m", "builder", "store", "verify"],
        env=machine.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert verified.returncode == 0, verified.stdout + verified.stderr
    edit(kernel / "build.toml", ' "csrc/slow.cpp",', "")
    built = machine.build(kernel)
    assert re.search(r"from caches: [1-9]\d* of the store", built.said)
    assert built.sha256 == machine.build(kernel, "--no-cache").sha256


@pytest.mark.slow
def test_eight_builds_on_one_cache_at_once_are_right(machine, kernel):
    kernels = []
    for number in range(8):
        copy = Path(shutil.copytree(kernel, kernel.with_name(f"tiny{number}")))
        edit(copy / "csrc/factor.h", "2.0f", f"{number % 3}.0f")
        kernels.append(copy)
    with ThreadPoolExecutor(8) as pool:
        together = [build.sha256 for build in pool.map(lambda copy: machine.build(copy, "--jobs", "1"), kernels)]
    assert together[:3] == [machine.build(copy, "--no-cache").sha256 for copy in kernels[:3]]
    assert together == [together[number % 3] for number in range(8)]


@pytest.mark.slow
def test_a_folder_that_machines_share_is_read_and_written_by_right(tmp_path, environments, kernel):
    shared = tmp_path / "shared"
    shared.mkdir()
    one, two, three = (Machine(tmp_path / name, environments) for name in ("one", "two", "three"))
    first = one.build(kernel, "--cache", str(shared))
    assert (first.compiled, list(shared.iterdir())) == ({BINDING, SOURCE}, [])
    one.build(kernel, "--cache", str(shared), "--cache-access", "write")
    second = two.build(kernel, env={"BUILDER_CACHE": f"file://{shared}"})
    assert second.cached == {BINDING: str(shared), SOURCE: str(shared)}
    assert second.sha256 == first.sha256
    assert two.build(kernel).cached == {BINDING: "store", SOURCE: "store"}  # it kept them
    third = three.build(kernel, "--cache", str(shared), "--cache-access", "write")
    assert third.compiled == {BINDING, SOURCE}  # one that writes alone reads nothing
    assert third.sha256 == first.sha256


@pytest.mark.slow
def test_a_cache_that_is_not_there_is_told_and_one_that_cannot_be_is_refused(machine, kernel, tmp_path):
    built = machine.build(kernel, "--cache", str(tmp_path / "none"))
    assert f"note: the cache {tmp_path / 'none'} is not used: the folder" in built.said
    refused = machine.run(kernel, "--cache", "gopher://host")
    assert refused.returncode == 2
    assert "no cache of compiled files" in refused.stderr
