"""The cache of compiled files in real builds: what is compiled again, and that the bytes stay the same."""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from builder.compile_cache.caches import Caches
from builder.compile_cache.folder import Entry, Folder
from builder.compile_cache.session import Session, answering
from builder.toolchain import this_machine
from builder.toolchain.tool import Search
from tests import needs
from tests.given import processes
from tests.given.files import edit
from tests.given.kernels import PLAIN_CELL, linux
from tests.integration import compiling

OTHER, SOURCE = "csrc/answer.cpp", "csrc/scale.cpp"

pytestmark = [
    pytest.mark.cmake,
    linux,
]


class Machine:
    """A machine with a store of its own, and the torch and tools of these tests."""

    def __init__(self, folder, *, store=None):
        self.store, self.output = store or folder / "store", folder / "dist"
        self.store.mkdir(parents=True, exist_ok=True)
        self.env = processes.variables(self.store)

    def options(self, kernel, *more):
        """Return the arguments of a build."""
        own = ("--variant", PLAIN_CELL, "--no-isolation", "--json", "--rebuild", "--output", self.output)
        return ("build", kernel, *own, *more)

    def run(self, kernel, *options, check=0, **more):
        return processes.builder(*self.options(kernel, *options), store=self.store, check=check, **more)

    def build(self, kernel, *options, **more):
        """Build, and return what came of it."""
        done = self.run(kernel, *options, **more)
        (result,) = json.loads(done.stdout)
        return Build(result, done.stderr)


class Build:
    """A build: its digest, and the sources that were compiled and that came from a cache."""

    def __init__(self, result, said):
        self.sha256, self.said, self.notes = result["sha256"], said, result["notes"]
        own = [
            (re.sub(r"CMakeFiles/_plain[^/]*\.dir/(.+)\.o", r"\1", file["output"]), file.get("cache"))
            for file in result["report"]["files"]
            if re.match(r"CMakeFiles/_plain.*\.o$", file["output"])
        ]
        self.compiled = {name for name, cache in own if cache is None}
        self.cached = {name: cache for name, cache in own if cache is not None}


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path / "machine")


def test_an_edit_of_python_compiles_nothing_and_gives_the_bytes_of_a_build_without_cache(store, plain, tmp_path):
    # The store that tests share has all of the kernel but these two files.
    machine, sources = Machine(tmp_path, store=store), {"csrc/answer.cpp", "csrc/scale.cpp"}
    for name in sources:
        (plain / name).write_text(f"// {secrets.token_hex(16)}\n{(plain / name).read_text()}")
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
def test_an_edited_header_compiles_what_includes_it(machine, headed):
    first = machine.build(headed)
    edit(headed / "csrc/factor.h", "2.0f", "3.0f")
    second = machine.build(headed)
    assert SOURCE in second.compiled
    asked = ("why", headed / "csrc/factor.h", "--variant", PLAIN_CELL, "--no-isolation")
    why = processes.builder(*asked, store=machine.store, check=0)
    assert re.search(
        rf"^{PLAIN_CELL}: {SOURCE}: compiled in [\d.]+ s; changed: csrc/factor.h$", why.stdout, re.MULTILINE
    )
    assert second.sha256 != first.sha256
    edit(headed / "csrc/factor.h", "3.0f", "2.0f")
    back = machine.build(headed)
    assert (back.compiled, back.sha256) == (set(), first.sha256)


@pytest.mark.slow
def test_a_new_header_that_hides_another_one_is_seen(machine, headed):
    (headed / "csrc/scale.cpp").write_text("#include <hidden/factor.h>\n" + (headed / "csrc/scale.cpp").read_text())
    edit(
        headed / "build.toml",
        '"csrc/factor.h"]',
        '"csrc/factor.h", "late/hidden/factor.h"]\ninclude = ["early", "late"]',
    )
    (headed / "late/hidden").mkdir(parents=True)
    (headed / "late/hidden/factor.h").write_text("// nothing yet\n")
    machine.build(headed)
    (headed / "early/hidden").mkdir(parents=True)
    (headed / "early/hidden/factor.h").write_text("constexpr int A_NEW_HEADER = sizeof(char[1]);\n#error found\n")
    edit(headed / "build.toml", '"csrc/factor.h", ', '"csrc/factor.h", "early/hidden/factor.h", ')
    assert "#error found" in machine.run(headed, check=4).stderr


@pytest.mark.slow
def test_a_file_that_the_assembler_reads_is_seen(machine, headed):
    asm = 'asm(".section .rodata\\nblob: .incbin \\"/tmp/builder/src/csrc/blob.bin\\"\\n.text");\n'
    (headed / "csrc/scale.cpp").write_text(asm + (headed / "csrc/scale.cpp").read_text())
    edit(headed / "build.toml", '"csrc/factor.h"]', '"csrc/factor.h", "csrc/blob.bin"]')
    digests = []
    for content in (b"one", b"two"):
        (headed / "csrc/blob.bin").write_bytes(content)
        cached = machine.build(headed)
        assert cached.sha256 == machine.build(headed, "--no-cache").sha256
        digests.append(cached.sha256)
    assert digests[0] != digests[1]


@pytest.mark.slow
def test_the_time_of_the_build_in_a_source_is_seen(machine, headed):
    with (headed / SOURCE).open("a") as source:
        source.write('extern "C" const char *plain_when() { return __DATE__ __TIME__; }\n')
    digests = [machine.build(headed, env={"SOURCE_DATE_EPOCH": str(epoch)}).sha256 for epoch in (10**9, 10**9 + 60)]
    digests += [
        machine.build(headed, "--no-cache", env={"SOURCE_DATE_EPOCH": str(epoch)}).sha256
        for epoch in (10**9, 10**9 + 60)
    ]
    assert digests[:2] == digests[2:]
    assert digests[0] != digests[1]


@pytest.mark.slow
def test_damaged_entries_are_compiled_again(machine, headed):
    first = machine.build(headed)
    for number, path in enumerate(sorted((machine.store / "compiled").glob("*/*"))):
        content = bytearray(path.read_bytes())
        if number % 2:
            content[len(content) // 2] ^= 0xFF
            path.write_bytes(content)
        else:
            path.write_bytes(content[: len(content) // 2])
    second = machine.build(headed)
    assert (second.compiled, second.sha256) == ({OTHER, SOURCE}, first.sha256)


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
def test_objects_of_another_architecture_are_not_linked_but_compiled(machine, headed, foreign):
    first = machine.build(headed)
    cache = Folder(root=machine.store / "compiled")
    for path in (machine.store / "compiled").glob("*/*"):
        if cache.get(path.name).holds_object:
            cache.put(path.name, Entry(value=foreign))
    second = machine.build(headed)
    assert (second.compiled, second.sha256) == ({OTHER, SOURCE}, first.sha256)
    assert "could not be linked, so all were compiled here" in second.said
    assert machine.build(headed).sha256 == first.sha256


@pytest.mark.slow
def test_a_full_disk_is_told_once_and_fails_nothing(machine, headed):
    alone = ("unshare", "--user", "--map-root-user", "--mount", "--")
    if subprocess.run([*alone, "true"], check=False).returncode != 0:
        pytest.skip("this kernel allows no user namespaces, which a small disk of its own is mounted in")
    (machine.store / "compiled").mkdir()
    script = 'mount -t tmpfs -o size=24k none "$1"; shift; exec "$@"'
    full = machine.build(headed, prefix=[*alone, "sh", "-euc", script, "-", machine.store / "compiled"])
    assert full.said.count("compiled files are not kept") == 1
    assert "No space left on device" in full.said
    assert full.sha256 == machine.build(headed, "--no-cache").sha256


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda sign: sign.name)
def test_what_is_finished_when_a_build_is_stopped_is_not_compiled_again(machine, headed, sign):
    (headed / "csrc/slow.cpp").write_text(compiling.SLOW_TO_COMPILE)
    edit(headed / "build.toml", '"csrc/scale.cpp", ', '"csrc/scale.cpp", "csrc/slow.cpp", ')
    kept = machine.store / "compiled"
    code, _ = compiling.stopped(
        sign,
        lambda: len(list(kept.glob("*/*"))) >= 4,
        *machine.options(headed, "--jobs", "2"),
        env=machine.env,
    )
    assert code != 0
    processes.builder("store", "verify", store=machine.store, check=0)
    edit(headed / "build.toml", ' "csrc/slow.cpp",', "")
    built = machine.build(headed)
    assert re.search(r"from caches: [1-9]\d* of the store", built.said)
    assert built.sha256 == machine.build(headed, "--no-cache").sha256


@pytest.mark.slow
def test_eight_builds_on_one_cache_at_once_are_right(machine, headed):
    kernels = []
    for number in range(8):
        copy = Path(shutil.copytree(headed, headed.with_name(f"headed{number}")))
        edit(copy / "csrc/factor.h", "2.0f", f"{number % 3}.0f")
        kernels.append(copy)
    with ThreadPoolExecutor(8) as pool:
        together = [build.sha256 for build in pool.map(lambda copy: machine.build(copy, "--jobs", "1"), kernels)]
    assert together[:3] == [machine.build(copy, "--no-cache").sha256 for copy in kernels[:3]]
    assert together == [together[number % 3] for number in range(8)]


@pytest.mark.slow
def test_a_folder_that_machines_share_is_read_and_written_by_right(tmp_path, headed):
    shared = tmp_path / "shared"
    shared.mkdir()
    one, two, three = (Machine(tmp_path / name) for name in ("one", "two", "three"))
    first = one.build(headed, "--cache", str(shared))
    assert (first.compiled, list(shared.iterdir())) == ({OTHER, SOURCE}, [])
    one.build(headed, "--cache", str(shared), "--cache-access", "write")
    second = two.build(headed, env={"BUILDER_CACHE": f"file://{shared}"})
    assert second.cached == {OTHER: str(shared), SOURCE: str(shared)}
    assert second.sha256 == first.sha256
    assert two.build(headed).cached == {OTHER: "store", SOURCE: "store"}  # it kept them
    third = three.build(headed, "--cache", str(shared), "--cache-access", "write")
    assert third.compiled == {OTHER, SOURCE}  # one that writes alone reads nothing
    assert third.sha256 == first.sha256


@pytest.mark.slow
def test_a_cache_that_is_not_there_is_told_and_one_that_cannot_be_is_refused(machine, headed, tmp_path):
    built = machine.build(headed, "--cache", str(tmp_path / "none"))
    assert f"note: the cache {tmp_path / 'none'} is not used: the folder" in built.said
    assert "no cache of compiled files" in machine.run(headed, "--cache", "gopher://host", check=2).stderr
