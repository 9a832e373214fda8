"""Wheels and libraries for the tests of the audit: made whole, then broken in one way."""

import base64
import functools
import hashlib
import itertools
import json
from pathlib import Path

import pytest

from builder.wheel.archive import Bytes, pack
from tests import needs
from tests.given.processes import output

OPS = "_demo_cpu_0000001"

BASE = r"""
#include <stdint.h>
extern "C" {
void *PyModule_Create2(void *, int);
int torch_library_impl(void *, const char *, void *, uint64_t);
__attribute__((visibility("default"))) void *PyInit_OPS(void) {
  torch_library_impl(nullptr, "f", nullptr, HEADERSULL);
  return PyModule_Create2(nullptr, 3);
}
}
""".replace("OPS", OPS)

LINK = ("-Wl,--no-as-needed", "-ltorch_cpu", "-Wl,--as-needed")


def demo_wheel(
    directory,
    *,
    library=None,
    label="torch.stable210.cpu",
    tag="cp39-abi3-manylinux_2_28_x86_64",
    backend="cpu",
    archs=None,
    ops=OPS,
    requires="torch>=2.10",
    package=(),
    metadata=(),
    outside=(),
    edit=lambda members: members,
):
    """Write a wheel that is right in every respect but those that the arguments change."""
    suffix = f"+{label}" if label else ""
    dist_info = f"demo-1.0.0{suffix}.dist-info"
    # The file as it is generated, or as it was for libraries that are modules of Python.
    load = f"from . import {ops}" if "-abi3-" in tag else f'torch.ops.load_library(Path(__file__).parent / "{ops}.so")'
    files = {
        "__init__.py": b"from ._ops import ops\n",
        "_ops.py": f"from pathlib import Path\nimport torch\n{load}\nops = torch.ops.{ops}\n".encode(),
        **dict(package),
    }
    if library is not None:
        files[f"{ops}.so" if "-none-" in tag else f"{ops}.abi3.so"] = library
    hashes = {
        name: base64.b64encode(hashlib.sha256(content).digest()).decode()
        for name, content in files.items()
        if not name.endswith((".pyc", ".pyo"))
    }
    values = {
        "name": "demo",
        "id": ops,
        "version": 1,
        "license": "Apache-2.0",
        "python-depends": [],
        "backend": {"type": backend} | ({} if archs is None else {"archs": archs}),
        "digest": {"algorithm": "sha256", "files": hashes},
        **dict(metadata),
    }
    members = {f"demo/{name}": Bytes(content) for name, content in files.items()}
    members["demo/metadata.json"] = Bytes(json.dumps(values).encode())
    pure = "true" if tag.endswith("any") else "false"
    members[f"{dist_info}/WHEEL"] = Bytes(f"Wheel-Version: 1.0\nRoot-Is-Purelib: {pure}\nTag: {tag}\n".encode())
    members[f"{dist_info}/METADATA"] = Bytes(
        f"Metadata-Version: 2.4\nName: demo\nVersion: 1.0.0{suffix}\nRequires-Dist: {requires}\n".encode()
    )
    members.update({name: Bytes(content) for name, content in dict(outside).items()})
    path = directory / f"demo-1.0.0{suffix}-{tag}.whl"
    path.write_bytes(pack(edit(members), dist_info=dist_info))
    return path


class Compiler:
    """The real compilers, each output made once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.made = {}
        self.places = (directory / str(number) for number in itertools.count())

    def library(self, extra="", *flags, link=LINK, base=BASE, headers="0x020a000000000000", strip=False):
        """Return the bytes of a shared library that is right for the demo wheel, and what is added to it."""
        key = (extra, flags, link, base, headers, strip)
        if key in self.made:
            return self.made[key]
        place = next(self.places)  # a compilation that fails leaves its folder, and the next one has another
        place.mkdir()
        for name in ("libtorch_cpu.so", "libmissing.so.1"):
            output("gcc", "-shared", "-nostdlib", f"-Wl,-soname,{name}", "-o", place / name, "-x", "c", "/dev/null")
        source, library = place / "source.cpp", place / "out.so"
        source.write_text((base + extra).replace("HEADERS", headers))
        options = ("-shared", "-fPIC", "-O1", "-fno-gnu-unique")
        output("g++", *options, source, "-o", library, f"-L{place}", *flags, *link)
        if strip:
            output("strip", "--strip-all", library)
        self.made[key] = library.read_bytes()
        return self.made[key]


@pytest.fixture(scope="session")
def compiler(tmp_path_factory):
    needs.program("g++")
    return Compiler(tmp_path_factory.mktemp("libraries"))


@pytest.fixture
def make_wheel(tmp_path):
    return functools.partial(demo_wheel, tmp_path)
