"""What decides the bytes of a wheel is one list: what a build imports and opens, the build key and Nix agree on it."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from builder.make import record
from tests import needs
from tests.paths import ROOT

LISTED = frozenset(name for name, _ in record.files())
SCRIPTS = {
    "builder/loadtest/child.py",
    "builder/loadtest/kernel_client.py",
    "builder/sandbox/enter.py",
}
"""Run as files of their own, by a build that knows their place."""
LATE = {f"builder/config/v{number}.py" for number in (1, 2, 3, 6)}
"""Imported for a config of an older schema."""
NOT_OPENED = {"builder/data/matrix.toml", "builder/data/pins.toml"}
"""Read by modules of the list for others: a cell is handed its row and its pins."""

LISTEN = """
import json, sys
from pathlib import Path
opened = set()
sys.addaudithook(lambda event, arguments: opened.add(str(arguments[0])) if event == "open" else None)
import builder.make.derivation
"""


def fresh(code, *arguments):
    """Return the paths of ours in the `answer` of some code, run by a fresh interpreter that can build a cell."""
    command = [sys.executable, "-c", f"{LISTEN}{code}\nprint(json.dumps(sorted(answer)))", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.removeprefix(f"{ROOT}/") for path in json.loads(done.stdout) if path.startswith(f"{ROOT}/")}


def closure(start):
    """Return the files of every module that a module imports, directly or through others."""
    found, waiting = set(), [start]
    while waiting:
        module = waiting.pop()
        path = ROOT / module.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        name = path.relative_to(ROOT).as_posix()
        if name in found or not path.is_file():
            continue
        found.add(name)
        waiting += [module.rpartition(".")[0]] if "." in module else []
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            names += [f"{names[0]}.{each.name}" for each in node.names] if names else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            waiting += [each for each in names if each.split(".")[0] == "builder"]
    return found


def test_the_list_has_exactly_the_code_that_a_build_imports():
    assert {name for name in LISTED if name.startswith("builder/") and name.endswith(".py")} - SCRIPTS == closure(
        "builder.make.derivation"
    )


def test_a_fresh_interpreter_that_builds_imports_exactly_the_list():
    imported = fresh("answer = [m.__file__ for name, m in sys.modules.items() if name.split('.')[0] == 'builder']")
    assert (
        imported == {name for name in LISTED if name.startswith("builder/") and name.endswith(".py")} - SCRIPTS - LATE
    )


def test_the_list_has_exactly_the_data_that_this_code_names():
    named = set()
    for name in LISTED:
        if name.endswith(".py"):
            text = (ROOT / name).read_text(encoding="utf-8")
            named.update(f"builder/data/{file}" for file in re.findall(r'DATA / "([\w.-]+)"', text))
    assert named - NOT_OPENED == {name for name in LISTED if name.startswith("builder/data/")}


RENDER = """
from builder import kernel, render
for folder in sys.argv[1:]:
    loaded = kernel.load(Path(folder))
    for backend in render.backends(loaded):
        render.render(loaded, backend)
answer = opened
"""


RARE = """\
[general]
name = "rare"
version = 1
edition = 5
license = "MIT"
backends = ["cuda"]
[torch]
[kernel.rare]
backend = "cuda"
depends = ["torch", "cutlass_4_0"]
src = ["rare.cu", "made.cu"]
include = ["fmt:include"]
libraries = ["nvrtc"]
file-flags = { "rare.cu" = ["-O1"] }
when = { torch = ">=2.10" }
[kernel.other]
backend = "cuda"
depends = ["torch"]
src = ["rare.cu"]
when = { torch = ">=2.11" }
[kernel.more]
backend = "cuda"
depends = ["torch"]
src = ["rare.cu"]
extension = "more"
[extension.more]
src = []
when = { torch = ">=2.10" }
[sources.fmt]
git = "https://example.org/fmt"
rev = "0123456789abcdef0123456789abcdef01234567"
[[generate]]
script = "make.py"
outputs = ["made.cu"]
"""


def test_rendering_opens_exactly_the_templates_and_the_cmake_of_the_list(tmp_path):
    rare = {"of-python": RARE, "of-each-python": RARE.replace("[torch]", '[torch]\npython-abi = "cpython"')}
    for name, config in rare.items():
        package = tmp_path / name / "torch-ext/rare"
        package.mkdir(parents=True)
        (tmp_path / name / "make.py").touch()
        (package / "__init__.py").touch()
        (tmp_path / name / "build.toml").write_text(config, encoding="utf-8")
        (tmp_path / name / "rare.cu").write_text("#include <Python.h>\n", encoding="utf-8")
    kernels = [
        path.parent for folder in ("examples", "tests/data/kernels") for path in ROOT.glob(f"{folder}/*/build.toml")
    ]
    kernels += [tmp_path / name for name in rare]
    opened = {path for path in fresh(RENDER, *kernels) if path.startswith(("cmake/", "templates/", "builder/data/"))}
    assert opened <= LISTED
    assert {name for name in LISTED if name.startswith(("cmake/", "templates/"))} <= opened


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Return a copy of the repository whose files may be changed."""
    folder = tmp_path_factory.mktemp("copy")
    for top in ("builder", "templates", "cmake"):
        shutil.copytree(ROOT / top, folder / top, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_one_changed_byte_of_the_list_changes_the_key_and_none_outside_does(copy, monkeypatch):
    places = {name: copy / name for name, _ in record.files()}
    assert all(path.is_file() for path in places.values())

    changed = {}
    identity = record.identity.__wrapped__
    monkeypatch.setattr(record.resources, "place", lambda path: copy / path)
    monkeypatch.setattr(record, "LIST", copy / "builder/data/decides-bytes.toml")
    before = identity()
    try:
        for name, path in places.items():
            content = path.read_bytes()
            path.write_bytes(content + b"\n")
            assert identity() != before, name
            path.write_bytes(content)
        # All others at once: none of them may count.
        for path in copy.rglob("*"):
            if path.is_file() and path.relative_to(copy).as_posix() not in LISTED:
                content = path.read_bytes()
                path.write_bytes(content + b"\n")
                changed[path] = content
        assert changed
        assert identity() == before
    finally:
        for path, content in changed.items():
            path.write_bytes(content)


@pytest.mark.nix
def test_the_derivation_of_a_cell_is_given_exactly_the_list(copy):
    needs.program("nix")

    def core():
        text = f'"${{(import {copy}/builder/nix).tool.core}}"'
        command = ["nix", "--extra-experimental-features", "nix-command", "eval", "--impure", "--raw", "--expr", text]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    given = core()

    files = {path.relative_to(given).as_posix() for path in Path(given).rglob("*") if path.is_file()}
    assert files == LISTED
    for name, listed in (
        ("builder/repro/variations.py", False),
        ("builder/data/pins.toml", False),
        ("builder/render/template_values.py", True),
    ):
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content + b"\n")
        assert (core() != given) == listed, name
        (copy / name).write_bytes(content)
