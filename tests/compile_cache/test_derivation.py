"""What goes between the derivations of a cell's files and that of the cell."""

import json
from unittest.mock import Mock

import pytest

from builder import kernel, matrix
from builder.compile_cache import derivation
from builder.compile_cache.folder import Entry, Folder
from builder.make.job import CompileError, OutOfMemoryError, PinnedPackages, Spec
from builder.pins import PinSet
from tests.paths import ROOT

CELL = matrix.select(kernel.load(ROOT / "tests/data/kernels/tiny").config, matrix.rows())[0]
ONE, TWO = "ab" * 20, "ac" * 20


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_entries_of_all_files_are_found_in_one_folder(place):
    for name, key in (("first", ONE), ("second", TWO), ("third", TWO)):
        Folder(root=place / name).put(key, Entry(value=name.encode()))
    (place / "empty").mkdir()
    found = Folder(root=derivation.joined(place / name for name in ("first", "second", "empty", "third")))
    assert found.get(ONE).value == b"first"
    assert found.get(TWO).value == b"second"


def test_a_kernel_has_its_files_and_the_names_of_the_others(place):
    (place / "stored").write_bytes(b"int x;\n")
    files = {"csrc/deep/x.cpp": str(place / "stored")}
    root = derivation.written({"files": files, "texts": {"csrc/y.cpp": "", "build.toml": "a = 1\n"}})
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert found == {"csrc/deep/x.cpp": b"int x;\n", "csrc/y.cpp": b"", "build.toml": b"a = 1\n"}


@pytest.mark.parametrize(("error", "code"), [(CompileError("refused"), 0), (OutOfMemoryError("memory ran out"), 4)])
def test_only_want_of_memory_fails_the_derivation_of_a_file(place, monkeypatch, capsys, error, code):
    monkeypatch.setattr(derivation.derivation, "enclosed", Mock(side_effect=error))
    pins = PinSet("cp311", "x86_64-linux", ())
    spec = Spec(kernel=place, cell=CELL, environment=PinnedPackages(path=place, pins=pins))
    (place / "given").write_text(json.dumps({"files": {}, "texts": {}}))
    environ = {
        "out": str(place / "out"),
        "kernelPath": str(place / "given"),
        "spec": spec.to_json(),
        "source": "csrc/x.cpp",
    }
    assert derivation.main(environ) == code
    assert list((place / "out").iterdir()) == []
    assert str(error) in capsys.readouterr().err
