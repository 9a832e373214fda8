"""Wheels of made-up kernels, in the layout of real ones, made in memory."""

import zipfile
from pathlib import Path

from packaging.utils import canonicalize_name

from builder.matrix.variant import Variant
from builder.metadata import METADATA_FILE, KernelMetadata
from builder.pins import PinnedWheel
from builder.wheel import core_metadata, kernel_wheel
from builder.wheel.archive import Bytes, pack
from tests import hostile
from tests.given.files import sha256


def package(name, variant, *, content="answer = 42\n", version=1, archs=None, shared=(), more=None):
    """Return the files of a Python package, with its metadata.json."""
    files = {
        "__init__.py": Bytes(content.encode()),
        "_ops.py": Bytes(b"ops = None\n"),
        "layers/__init__.py": Bytes(b""),
        **(more or {}),
    }
    backend = {"type": str(variant.backend)} | ({} if archs is None else {"archs": archs})
    table = {
        "name": name,
        "id": f"_{name.replace('-', '_')}_{variant.backend}_0123456",
        "version": version,
        "license": "Apache-2.0",
        "python-depends": [],
        "backend": backend,
    }
    content = {path: member.content for path, member in files.items()}
    files[METADATA_FILE] = Bytes(KernelMetadata(table).built(content, shared_code=shared).text.encode())
    return files


def tag_of(variant):
    if variant.system is None:
        return "py3-none-any"
    cpu, system = variant.system.split("-")
    platform = f"manylinux_2_28_{cpu}" if system == "linux" else "macosx_15_0_arm64"
    return f"{f'{variant.python}-{variant.python}' if variant.python else 'cp39-abi3'}-{platform}"


def make(
    folder: Path,
    name,
    variant,
    *,
    requires=("torch",),
    version="1.0.0",
    content="answer = 42\n",
    files=None,
    tag=None,
    label=None,
    extra=None,
):
    """Write a wheel and return its path; `extra` are further members, by path in the wheel."""
    tag = tag or tag_of(variant)
    module = name.replace("-", "_")
    full = f"{version}+{variant.label if label is None else label}"
    distribution = canonicalize_name(name).replace("-", "_")
    dist_info = f"{distribution}-{full}.dist-info"
    files = package(name, variant, content=content) if files is None else files
    members = {f"{module}/{path}": member for path, member in files.items()}
    core = [
        "Metadata-Version: 2.4",
        f"Name: {name}",
        f"Version: {full}",
        f"Summary: The {name} kernel, built as {variant}",
        "License-Expression: Apache-2.0",
        "Requires-Python: >=3.9",
        *(f"Requires-Dist: {requirement}" for requirement in requires),
    ]
    members[f"{dist_info}/METADATA"] = Bytes("".join(f"{line}\n" for line in core).encode())
    members[f"{dist_info}/WHEEL"] = Bytes(core_metadata.wheel_file(tag=tag, pure=variant.system is None).encode())
    members |= extra or {}
    path = folder / f"{distribution}-{full}-{tag}.whl"
    path.write_bytes(pack(members, dist_info=dist_info))
    return path


def one_module(name, version="1.0", *, module="{}.py", text="answer = 42\n", requires=(), tag="py3-none-any"):
    """Return the bytes of a wheel with one module, `<name>.py`, as an index has it."""
    info = f"{name}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    members = {
        module.format(name): Bytes(text.encode()),
        f"{info}/METADATA": Bytes("".join(f"{line}\n" for line in lines).encode()),
        f"{info}/WHEEL": Bytes(f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n".encode()),
    }
    return pack(members, dist_info=info)


def simple(folder, name, version="1.0", *, tag="py3-none-any", **content):
    """Write a wheel with one module, and return its pin."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    path.write_bytes(one_module(name, version, tag=tag, **content))
    return PinnedWheel(file=path.name, name=name, version=version, sha256=sha256(path))


def read(folder, *names, kernel="relu", **more):
    """Write wheels of a kernel, by the names of their variants, and read them."""
    return kernel_wheel.read_all([make(folder, kernel, Variant.parse(name), **more) for name in names])


def library(*code):
    """Return a shared library with some device code."""
    return Bytes(hostile.elf({f"code{number}": each for number, each in enumerate(code)}))


def rewritten(path, change, *, fits=False):
    """Write a wheel again with its files changed, and its RECORD left as it was or one that fits."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    change(members)
    if fits:
        dist_info = next(name.split("/")[0] for name in members if name.endswith("/METADATA"))
        members.pop(f"{dist_info}/RECORD")
        path.write_bytes(pack({name: Bytes(content) for name, content in members.items()}, dist_info=dist_info))
        return path
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path
