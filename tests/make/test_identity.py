import hashlib
import os
import struct
import subprocess
from dataclasses import asdict, replace
from importlib import metadata
from unittest.mock import Mock

import pytest

from builder import __version__
from builder.config import Framework
from builder.make.framework import (
    FrameworkIdentity,
    IdentityError,
    file_identity,
    identity_of,
    python_of_torch,
    torch_identity,
)
from builder.make.record import BuildRecord, changes, identity, of_build_tools, record_of, summary
from builder.wheel.options import BuildOptions
from tests import needs
from tests.given.jobs import job
from tests.hostile import HASH, PT_NOTE, SYMTAB, elf

VERSION = """
from typing import Optional

__version__ = '{version}'
debug = False
cuda: Optional[str] = {cuda}
git_version = '{git}'
hip: Optional[str] = {hip}
xpu: Optional[str] = {xpu}
"""


def torch_at(
    folder,
    *,
    version="2.13.0+cpu",
    cuda=None,
    git="c" * 40,
    libraries=("libtorch_cpu.so",),
    build_id="1" * 40,
    python="cpython-311-x86_64-linux-gnu",
    abi="1",
    xpu=None,
    hip=None,
):
    root = folder / "torch"
    (root / "lib").mkdir(parents=True)
    (root / "share/cmake/Torch").mkdir(parents=True)
    text = VERSION.format(version=version, cuda=repr(cuda), git=git, xpu=repr(xpu), hip=repr(hip))
    (root / "version.py").write_text(text)
    (root / f"_C.{python}.so").touch()
    config = f'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI={abi}")'
    (root / "share/cmake/Torch/TorchConfig.cmake").write_text(config)
    for name in libraries:
        (root / "lib" / name).write_bytes(f"{name} {build_id}".encode())
    return folder


def record(**changes):
    fields = {
        "builder": "1",
        "variant": "v",
        "wheel": {},
        "project": {"csrc/a.cpp": "1"},
        "framework": {"version": "2.13.0+cpu"},
        "pins": "",
        "toolchain": {"cxx-digest": "1"},
        "environment": {},
    }
    return BuildRecord(**{**fields, **changes})


def test_the_same_torch_at_two_paths_is_the_same(tmp_path):
    one, two = torch_at(tmp_path / "a"), torch_at(tmp_path / "b" / "deeper")
    assert torch_identity(one) == torch_identity(two)


@pytest.mark.parametrize(
    "change",
    [
        {"version": "2.13.0+cu130"},
        {"version": "2.13.1+cpu"},
        {"cuda": "13.0"},
        {"git": "d" * 40},
        {"hip": "7.2"},
        {"xpu": "2025.3"},
        {"abi": "0"},
        {"build_id": "2" * 40},
        {"libraries": ("libtorch_cpu.so", "libc10.so")},
    ],
    ids=str,
)
def test_a_torch_that_differs_in_one_field_is_another(tmp_path, change):
    assert torch_identity(torch_at(tmp_path / "a")) != torch_identity(torch_at(tmp_path / "b", **change))


def test_a_torch_for_another_python_is_the_same(tmp_path):
    other = torch_at(tmp_path / "b", python="cpython-312-x86_64-linux-gnu")
    assert torch_identity(torch_at(tmp_path / "a")) == torch_identity(other)
    assert python_of_torch(other) == "cpython-312-x86_64-linux-gnu"
    assert python_of_torch(tmp_path) == ""


def test_the_library_of_torchs_python_bindings_is_no_part_of_it(tmp_path):
    other = torch_at(tmp_path / "b", libraries=("libtorch_cpu.so", "libtorch_python.so"))
    assert torch_identity(torch_at(tmp_path / "a")) == torch_identity(other)


def test_no_torch_is_an_error_that_says_where(tmp_path):
    with pytest.raises(IdentityError, match="no torch in"):
        torch_identity(tmp_path)


def test_a_folder_without_tvm_ffi_is_an_error_that_names_it(tmp_path):
    torch_at(tmp_path)
    with pytest.raises(IdentityError, match=f"no tvm-ffi in '{tmp_path}'"):
        identity_of(Framework.TVM_FFI, tmp_path)


def test_each_framework_is_read_where_both_are_installed(tmp_path):
    torch_at(tmp_path)
    (tmp_path / "apache_tvm_ffi-0.1.15.dist-info").mkdir()
    (tmp_path / "tvm_ffi/lib").mkdir(parents=True)
    library = tmp_path / "tvm_ffi/lib/libtvm_ffi.so"
    library.write_bytes(b"no ELF")
    found = identity_of(Framework.TVM_FFI, tmp_path)
    digest = hashlib.sha256(b"no ELF").hexdigest()
    assert (found.name, found.version) == ("tvm-ffi", "0.1.15")
    assert found.facts == {"build-id libtvm_ffi.so": f"sha256:{digest}"}
    assert identity_of(Framework.TORCH, tmp_path).name == "torch"


def test_the_abi_of_a_library_whose_symbols_are_damaged_is_the_declared_one(tmp_path):
    torch_at(tmp_path, abi="0")
    damaged = elf({"symbols": b"", "hash": struct.pack("<II", 0, 9)}, [(SYMTAB, "symbols"), (HASH, "hash")])
    (tmp_path / "torch/lib/libc10.so").write_bytes(damaged)
    assert torch_identity(tmp_path).facts["cxx11-abi"] == "0"


@pytest.mark.parametrize("text", ["", "def (", "__version__ = 1 + 1"], ids=repr)
def test_a_broken_version_file_is_an_error(tmp_path, text):
    torch_at(tmp_path)
    (tmp_path / "torch/version.py").write_text(text)
    with pytest.raises(IdentityError):
        torch_identity(tmp_path)


def test_a_library_whose_notes_are_damaged_is_known_by_its_content(tmp_path):
    library = tmp_path / "a.so"
    library.write_bytes(elf({"notes": b"\xff" * 12}, segments=[(PT_NOTE, 4, "notes")]))
    assert file_identity(library) == f"sha256:{hashlib.sha256(library.read_bytes()).hexdigest()}"
    library.write_bytes(elf({"notes": bytes(12) * 4097}, segments=[(PT_NOTE, 4, "notes")]))
    assert file_identity(library) == f"sha256:{hashlib.sha256(library.read_bytes()).hexdigest()}"


@pytest.mark.cmake
@needs.only_with("gcc")
def test_a_library_is_known_by_its_build_id_wherever_it_is(tmp_path):
    for name, build_id in (("a.so", "0x1234"), ("b.so", "0x1234"), ("c.so", "0x5678")):
        command = ["gcc", "-shared", "-nostdlib", f"-Wl,--build-id={build_id}", "-x", "c", "/dev/null", "-o"]
        subprocess.run([*command, tmp_path / name], check=True)
    assert file_identity(tmp_path / "a.so") == file_identity(tmp_path / "b.so") == "1234"
    assert file_identity(tmp_path / "c.so") == "5678"


@pytest.mark.cmake
@needs.only_with("gcc")
def test_a_build_id_is_read_without_section_headers(tmp_path):
    library = tmp_path / "a.so"
    command = ["gcc", "-shared", "-nostdlib", "-Wl,--build-id=0xabcd", "-x", "c", "/dev/null", "-o", library]
    subprocess.run(command, check=True)
    content = bytearray(library.read_bytes())
    content[0x28:0x30] = bytes(8)  # e_shoff
    content[0x3A:0x40] = bytes(6)  # e_shentsize, e_shnum, e_shstrndx
    library.write_bytes(content)
    assert file_identity(library) == "abcd"


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"\x7fELF" + b"\xff" * 100, b"\xcf\xfa\xed\xfe" + bytes(60)], ids=repr
)
def test_what_has_no_build_id_is_known_by_its_content(tmp_path, content):
    (tmp_path / "a.so").write_bytes(content)
    assert file_identity(tmp_path / "a.so") == f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.mark.cmake
@needs.only_with("g++")
@pytest.mark.parametrize("abi", ["0", "1"])
def test_the_symbols_of_c10_tell_the_abi_whatever_the_config_says(tmp_path, abi):
    torch_at(tmp_path, abi="1" if abi == "0" else "0")
    source = tmp_path / "c10.cpp"
    source.write_text("#include <string>\nnamespace c10 { void warn(const std::string &) {} }\n")
    library = tmp_path / "torch/lib/libc10.so"
    subprocess.run(["g++", "-shared", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", source, "-o", library], check=True)
    facts = torch_identity(tmp_path).facts
    assert facts["cxx11-abi"] == abi
    assert facts["platform"] == os.uname().machine


def test_builder_is_known_by_its_version_and_code():
    version, _, digest = identity().partition(" sha256:")
    assert version == __version__
    assert len(digest) == 64


def test_the_key_does_not_depend_on_the_order_of_fields():
    one = record(project={"a": "1", "b": "2"})
    assert one.key == record(project={"b": "2", "a": "1"}).key


@pytest.mark.parametrize(
    "change",
    [
        {"builder": "2"},
        {"variant": "w"},
        {"project": {"csrc/a.cpp": "2"}},
        {"project": {"csrc/b.cpp": "1"}},
        {"framework": {"version": "2.13.1+cpu"}},
        {"toolchain": {"cxx-digest": "2"}},
        {"pins": "1"},
        {"environment": {"SOURCE_DATE_EPOCH": "1"}},
    ],
    ids=str,
)
def test_every_field_is_in_the_key(change):
    assert record().key != record(**change).key


def test_a_variable_of_an_experiment_is_in_the_key():
    given = job(framework=FrameworkIdentity(name="torch", version="2.13.0"))
    other = replace(given.spec, options=BuildOptions(variables={"LD_PRELOAD": "/x.so"}))
    assert record_of(replace(given, spec=other)).key != record_of(given).key


def test_a_change_is_named_with_both_values():
    found = changes({"builder": "1", "project": {"csrc/a.cpp": "0"}}, record(variant="v"))
    assert [(c.before, c.after) for c in found if c.field == "project: csrc/a.cpp"] == [("0", "1")]


def test_a_cmake_that_is_no_package_is_no_error(monkeypatch):
    assert of_build_tools().keys() == {"cmake", "scikit-build-core"}

    monkeypatch.setattr(metadata, "version", Mock(side_effect=metadata.PackageNotFoundError))
    assert of_build_tools()["cmake"] == "not a package"


NAMED = ("CMakeLists.txt", "torch-ext/k/_ops.py", "torch-ext/k/metadata.json")


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        pytest.param(
            ("rmsnorm/kernel.cpp", *NAMED),
            "changed: project: rmsnorm/kernel.cpp; 3 rendered files have its new name",
            id="a source",
        ),
        pytest.param(
            ("a.h", *NAMED, "torch-ext/k/_ops_moe.py"),
            "changed: project: a.h; 4 rendered files have its new name",
            id="an extension",
        ),
        pytest.param(NAMED, "changed: " + ", ".join(f"project: {name}" for name in NAMED), id="what is rendered alone"),
        pytest.param(
            ("a.h", "b.h", "c.h", "d.h", "CMakeLists.txt"),
            "changed: project: a.h, project: b.h, project: c.h and 1 more; 1 rendered file has its new name",
            id="many",
        ),
    ],
)
def test_the_cause_of_a_new_build_is_named_before_what_follows_from_it(changed, line):
    before, after = (record(project=dict.fromkeys(changed, digest)) for digest in ("0", "1"))
    assert summary(asdict(before), after) == line
    causes = [f"project: {name}" for name in changed if name not in (*NAMED, "torch-ext/k/_ops_moe.py")]
    assert [change.field for change in changes(asdict(before), after)][: len(causes)] == causes


def test_a_record_that_did_not_change_has_no_changes():
    assert changes(asdict(record()), record()) == ()
    assert summary(asdict(record()), record()) == "the store no longer has it"
