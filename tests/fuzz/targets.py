"""Each reader of strangers' bytes, with inputs that are nearly right: it may refuse them, and do nothing else."""

import json
import struct
import sysconfig
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st

from builder import audit, json_text
from builder.audit import layout
from builder.audit.mangled import torch_names
from builder.audit.subject import MemberFile, Subject
from builder.binary import device_code
from builder.binary.extension import Extension
from builder.errors import BuilderError
from builder.matrix.variant import Variant
from builder.wheel import kernel_wheel
from builder.wheel.archive import Wheel
from tests import hostile
from tests.audit.conftest import demo_wheel
from tests.given.device_code import bundle, fatbin, image, packed
from tests.wheels import make

SLOW = 2.0
"""Seconds of processor time that no input of a few kilobytes may take."""
_INTERESTING = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, (1 << 64) - 1)
_CHANGES = ("a byte",) * 4 + ("a number",) * 6 + ("less", "a copy", "more")
"""What moves all that is behind it is rare: most readers refuse that at once."""
_CPU = Variant.parse("torch213-cxx11-cpu-x86_64-linux")
_INFO = "demo-1.0.0+torch.stable210.cpu.dist-info"


@dataclass(slots=True)
class Target:
    """A reader and its inputs."""

    inputs: st.SearchStrategy
    read: Callable[[object], object]
    runs: int = 0
    refused: int = 0
    slowest: float = 0.0
    """Seconds of processor time."""
    worst: object = field(default=None, repr=False)

    def check(self, value: object) -> None:
        """Read a value: an answer or a refusal in words is right, all else is an error of the reader."""
        began = time.process_time()
        try:
            self.read(value)
        except BuilderError as error:
            self.refused += 1
            str(error).encode()
        seconds = time.process_time() - began
        self.runs += 1
        if seconds > self.slowest:
            self.slowest, self.worst = seconds, value
        if seconds > SLOW:
            raise AssertionError(f"{seconds:.1f} s of processor time")


@st.composite
def damaged(draw, seeds):
    """Draw one of the seeds with some bytes, words or parts of it changed."""
    content = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(content)))
        match draw(st.sampled_from(_CHANGES)):
            case "a byte":
                content[at : at + 1] = bytes((draw(st.integers(0, 255)),))
            case "a number":
                width = draw(st.sampled_from((2, 4, 8)))
                number = draw(st.sampled_from((*_INTERESTING, at, len(content)))) % (1 << 8 * width)
                start = at - at % width
                content[start : start + width] = number.to_bytes(width, "little")
            case "less":
                del content[at : at + draw(st.integers(0, 64))]
            case "a copy":
                source = draw(st.integers(0, len(content)))
                content[at:at] = content[source : source + draw(st.integers(0, 256))]
            case _:
                content[at:at] = draw(st.binary(max_size=16))
    return bytes(content)


def _libraries():
    modules = sorted(Path(sysconfig.get_path("stdlib")).glob("lib-dynload/*.so"), key=lambda path: path.stat().st_size)
    names = b"\0_ZN2at6TensorD1Ev\0GLIBC_2.28\0libc.so.6\0$ORIGIN\0"
    need = struct.pack("<HHIII", 1, 1, 30, 16, 0) + struct.pack("<IHHII", 0, 0, 2, 19, 0)
    table = hostile.symbols([1, 1])
    parts = {
        "strings": names, "versions": need, "symbols": table, "hash": struct.pack("<II", 0, 3),
        "indices": struct.pack("<3H", 0, 2, 2), "note": struct.pack("<III4s8s", 4, 8, 3, b"GNU\0", b"identity"),
        "code": b"\x48\xb8" + bytes(5) + b"\x00\x0a\x02",
    }  # fmt: skip
    tags = [(1, 30), (29, 40), (hostile.VERNEED, "versions"), (hostile.SYMTAB, "symbols"), (hostile.HASH, "hash")]
    shown = [(hostile.PT_NOTE, 4, "note"), (hostile.PT_LOAD, 5, "code")]
    made = hostile.elf(parts, [*tags, (0x6FFFFFF0, "indices")], segments=shown)
    return [made, *(path.read_bytes() for path in modules[:2])]


def _macho():
    def command(kind, content):
        return struct.pack("<II", kind, 8 + len(content)) + content

    def text(kind, value):
        return command(kind, struct.pack("<IIII", 24, 0, 0, 0) + value + bytes(8 - len(value) % 8))

    names, symbol = b"\0_PyInit_demo\0_printf\0", struct.Struct("<IBBHQ")
    table = symbol.pack(1, 0x0F, 1, 0, 64) + symbol.pack(14, 1, 0, 0, 0)
    head = [text(0xD, b"@rpath/demo.so"), text(0xC, b"/usr/lib/libSystem.B.dylib"), command(0x1B, bytes(16))]
    head += [command(0x32, struct.pack("<IIII", 1, 15 << 16, 0, 0)), text(0x8000001C, b"@loader_path")]
    at = 32 + sum(map(len, head)) + 24
    head.append(command(2, struct.pack("<IIII", at, 2, at + len(table), len(names))))
    body = b"".join(head)
    return struct.pack("<IiiIIIII", 0xFEEDFACF, 0x0100000C, 0, 6, len(head), len(body), 0, 0) + body + table + names


def _device_code():
    cuda = fatbin(*[image(2, 80, content=bytes(32))] * 2)
    hip = bundle(**{"hipv4-amdgcn-amd-amdhsa__gfx90a": bytes(32)})
    return [cuda, hip, packed(hip), packed(hip) + cuda + hip]


def _read_library(content):
    extension = Extension.read("demo.so", content)
    device_code.read("demo.so", content, without=extension.relocatable_device_code)
    return audit.judge(
        Subject(name="demo", version="1.0.0", dist_info=_INFO, tags=("cp39-abi3-manylinux_2_28_x86_64",),
                libraries=(audit.Library(extension=extension),))
    )  # fmt: skip


def _subject(name, content):
    digest = MemberFile(size=len(content), sha256=bytes(32))
    path = f"{_INFO}/{name}" if name.isupper() else f"demo/{name}"
    return Subject(
        name="demo", version="1.0.0+torch.stable210.cpu", dist_info=_INFO, tags=("cp39-abi3-manylinux_2_28_x86_64",),
        package="demo", files={path: digest}, texts={path: content},
        facts=audit.FrameworkClaim.of(Variant.parse("torch-stable-abi210-cpu-x86_64-linux")),
    )  # fmt: skip


def _read_text(name):
    def read(content):
        found = tuple(layout.check(_subject(name, content)))
        assert found
        return json.dumps([finding.why for finding in found], ensure_ascii=False).encode()

    return read


def _read_wheel(name):
    def read(content):
        with tempfile.TemporaryDirectory(prefix="builder-fuzz-") as folder:
            path = Path(folder) / name
            path.write_bytes(content)
            json_text.document(audit.run(Wheel.read(path)).to_dict()).encode()
            for member in kernel_wheel.read(path).wheel.members.values():
                member.read()

    return read


def _wheel():
    with tempfile.TemporaryDirectory() as folder:
        whole = make(Path(folder), "relu", _CPU)
        other = demo_wheel(Path(folder), library=hostile.elf(), outside={f"{_INFO}/x": b"x" * 400})
        return whole.name, [whole.read_bytes(), other.read_bytes()]


_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.sampled_from(["cpu", "8.0"])
)
_INNER = _LEAVES | st.lists(_LEAVES, max_size=4) | st.dictionaries(st.text(max_size=8), _LEAVES, max_size=4)
_JSON = _INNER | st.lists(_INNER, max_size=4) | st.dictionaries(st.text(max_size=8), _INNER, max_size=4)
_KEYS = ("name", "id", "version", "license", "backend", "digest", "build", "provenance", "python-depends", "source")
_VALUES = _JSON | st.fixed_dictionaries({"archs": _JSON, "files": _JSON})
_TABLES = st.dictionaries(st.sampled_from(_KEYS), _VALUES)
_FIELDS = (
    "Requires-Dist: torch", "Name: demo", "Version: 1", "Tag: cp39", "==", ">=2.10", "; ", "(", ")", "1" * 40, ".",
    "os_name", '"', "\n", "\r\n", ":", " ", "é", "\ud800",
)  # fmt: skip
_TOKENS = (
    "_Z",
    "N",
    "2at",
    "3c10",
    "5torch",
    "6stable",
    "S",
    "S_",
    "NS_",
    "E",
    "L",
    "Lj1E",
    "T_",
    "_",
    "1" * 12,
    "9",
    "K",
)
_LINES = st.lists(st.sampled_from(_FIELDS), max_size=60).map(
    lambda words: "".join(words).encode("utf-8", "surrogatepass")
)
_RECORD = [b'demo/__init__.py,sha256=abc,0\ndemo/a.so,,\n"demo/a,b",sha256=,12\n']
_NAME, _WHEELS = _wheel()

TARGETS = {
    "wheel": Target(damaged(_WHEELS), _read_wheel(_NAME)),
    "ELF": Target(damaged(_libraries()), _read_library),
    "Mach-O": Target(damaged([_macho()]), _read_library),
    "device code": Target(damaged(_device_code()), lambda content: device_code.read("demo.so", content)),
    "METADATA": Target(_LINES | st.binary(max_size=200), _read_text("METADATA")),
    "WHEEL": Target(_LINES, _read_text("WHEEL")),
    "metadata.json": Target(_TABLES.map(lambda table: json.dumps(table).encode()) | damaged([b'{"name": "demo"}']),
                            _read_text("metadata.json")),
    "RECORD": Target(damaged(_RECORD), _read_text("RECORD")),
    "mangled names": Target(st.lists(st.sampled_from(_TOKENS), max_size=400).map("".join),
                            lambda name: list(torch_names(f"_Z{name}"))),
}  # fmt: skip
"""What is read -> its target."""
