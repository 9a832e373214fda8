"""Wheels of every kind that are right, and what a stranger may have done to a member of one."""

import base64
import hashlib
import json
import warnings
import zipfile

from builder.matrix.variant import Variant
from builder.publish import families
from builder.wheel import kernel_wheel
from builder.wheel.archive import Bytes, Wheel, pack
from tests import hostile
from tests.given.device_code import bundle, fatbin, image
from tests.wheels import make, package

PT_GNU_STACK = 0x6474E551
PLATFORM = "py3-none-manylinux_2_28_x86_64"
SASS = 2


def _wheel(folder, variant, device_code=None, archs=None):
    """Write a wheel of a kernel that breaks no rule."""
    parsed = Variant.parse(variant)
    ops = f"_relu_{parsed.backend}_0123456"
    more = {"_ops.py": Bytes(f"import torch\nops = torch.ops.{ops}\n".encode())}
    if parsed.system is not None:
        parts = {"stack": b"", **({} if device_code is None else {"code": device_code})}
        library = hostile.elf(parts, segments=[(PT_GNU_STACK, 6, "stack")])
        more[f"{ops}.so"] = Bytes(library, mode=0o755)
    files = package("relu", parsed, archs=archs, more=more)
    bill = {"components": [{"type": "library", "name": "torch"}, {"type": "file", "name": "__init__.py"}]}
    requires = ("torch",) if parsed.version is None else (f"torch=={parsed.version}.*",)
    info = f"relu-1.0.0+{parsed.label}.dist-info"
    extra = {f"{info}/sboms/relu.cdx.json": Bytes(json.dumps(bill).encode())}
    tag = "py3-none-any" if parsed.system is None else PLATFORM
    return make(folder, "relu", parsed, requires=requires, files=files, tag=tag, extra=extra)


def _cuda(folder):
    code = fatbin(image(SASS, 80), image(SASS, 90))
    return _wheel(folder, "torch213-cxx11-cu130-x86_64-linux", code, ["8.0", "9.0"])


def _rocm(folder):
    code = bundle(**{"hipv4-amdgcn-amd-amdhsa--gfx90a": b"\x7fELF" + bytes(60)})
    return _wheel(folder, "torch213-cxx11-rocm72-x86_64-linux", code, ["gfx90a"])


def _family(folder):
    whole = _cuda(folder)
    _, made = next(families.split(kernel_wheel.read(whole)))
    whole.unlink()
    (folder / made.name).write_bytes(made.content)
    return folder / made.name


KINDS = {
    "cpu": lambda folder: _wheel(folder, "torch213-cxx11-cpu-x86_64-linux"),
    "cuda": _cuda,
    "rocm": _rocm,
    "noarch": lambda folder: _wheel(folder, "torch-cuda"),
    "family": _family,
}
"""The kinds of wheels, each with the function that writes one that is right."""


def _swapped(members, name):
    """Exchange the content of a member for that of the next one."""
    names = [each for each, _ in members]
    other = names[(names.index(name) + 1) % len(names)]
    contents = dict(members)
    contents[name], contents[other] = contents[other], contents[name]
    return [(each, contents[each]) for each in names]


def _replaced(members, name, new):
    return [(each, new if each == name else content) for each, content in members]


MUTATIONS = {
    "drop": lambda members, name: [each for each in members if each[0] != name],
    "rename": lambda members, name: [(f"{each}.old" if each == name else each, content) for each, content in members],
    "duplicate": lambda members, name: [*members, (name, dict(members)[name])],
    "swap": _swapped,
    "empty": lambda members, name: _replaced(members, name, b""),
    "json": lambda members, name: _replaced(members, name, b"{}"),
    "library": lambda members, name: _replaced(members, name, hostile.elf()),
}


def members_of(path):
    """Return the names of the members of a wheel; of two that are alike, the first."""
    with zipfile.ZipFile(path) as archive:
        return [name for name in archive.namelist() if not name.startswith("relu/layers/")]


def mutate(path, mutation, name, *, repaired):
    """Change one member of a wheel in place; `repaired` gives it the RECORD and the digest that fit what is there."""
    with zipfile.ZipFile(path) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    members = MUTATIONS[mutation](members, name)
    if repaired and mutation != "duplicate":
        path.write_bytes(_repaired(Wheel.read(path).dist_info, dict(members)))
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a name that is there twice
        for each, content in members:
            archive.writestr(each, content)


def _repaired(dist_info, members):
    members.pop(f"{dist_info}/RECORD", None)
    files = {name.removeprefix("relu/"): content for name, content in members.items() if name.startswith("relu/")}
    digests = {
        name: base64.b64encode(hashlib.sha256(content).digest()).decode()
        for name, content in files.items()
        if name != "metadata.json"
    }
    try:
        table = json.loads(files.get("metadata.json", b""))
    except ValueError:
        table = None
    if isinstance(table, dict):
        table["digest"] = {"algorithm": "sha256", "files": digests}
        members["relu/metadata.json"] = json.dumps(table).encode()
    return pack({name: Bytes(content) for name, content in members.items()}, dist_info=dist_info)
