"""Which files of a package are taken apart to see what they register."""

from unittest.mock import Mock

import pytest

from builder.kernel.namespace import Module
from builder.lint import registration


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "torch-ext" / "relu"
    folder.mkdir(parents=True)
    return folder


def codes(package, **files):
    for name, text in files.items():
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    return [located.problem.code for located in registration.check(package, "relu")]


DEFINES = "import torch\nfrom .names import NAME, made\n"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("torch.library.define(NAME, '() -> ()')", "B120"),
        ("torch.library.define(made(), '() -> ()')", "B120"),
        ("torch.library.define(unknown(), '() -> ()')", "B121"),
    ],
)
def test_names_of_a_file_that_registers_nothing_are_followed(package, call, code):
    names = 'NAME = "mine::op"\n\ndef made():\n    return "mine::other"\n'
    assert codes(package, __init__="", names=names, ops=DEFINES + call + "\n") == [code]


def test_a_file_that_registers_nothing_is_still_read(package):
    assert codes(package, __init__="", wrong="def (:\n") == ["B122"]


def test_only_files_that_can_register_are_taken_apart(package, monkeypatch):
    monkeypatch.setattr(Module, "of", Mock(wraps=Module.of))
    assert codes(package, __init__="import torch\n", other="X = 1\n", ops="import torch.library\n") == []
    assert [call.args[1] for call in Module.of.call_args_list] == ["relu.ops"]


def test_a_name_that_python_reads_as_the_same_is_the_same(package):
    text = "import torch\ntorch.\U0001d4c1ibrary.define('mine::op', '() -> ()')\n"
    assert codes(package, __init__=text) == ["B120"]
