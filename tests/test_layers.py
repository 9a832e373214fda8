"""One direction of flow: a package imports only from packages before it, so there are no cycles."""

import ast
import functools
import graphlib
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from builder.cli import COMMANDS

ROOT = Path(__file__).parent.parent / "builder"
MODULES = {
    ".".join(("builder", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
    if not path.is_relative_to(ROOT / "nix")  # scripts of derivations and a template, no modules
}
FLOW = (
    # Loose modules, which know nothing of kernels; a new one belongs into a package, or here with a reason.
    "json_text",
    "errors",
    "codec",
    "resources",
    "toml",
    "wording",
    "hashes",
    "files",
    "terminal",
    "untrusted",
    "run",
    "templates",
    # From a config to a published wheel.
    "config",
    "kernel",
    "metadata",
    "matrix",
    "binary",
    "render",
    "pins",
    "wheel",
    "toolchain",
    "audit",
    "sandbox",
    "loadtest",
    "make",
    "lint",
    "store",
    "compile_cache",
    "environment",
    "publish",
    "plan",
    "engine",
    "report",
    "author",
    "doctor",
    "ci",
    "init",
    "port",
    "repro",
    "torch_day",
    "diff",
    "cli",
    "__main__",
)
"""Every module and package of `builder/`: one imports only from those before it."""
LOOSE = 14
"""The most modules that lie beside the packages, with `__init__` and `__main__` not counted."""
LONGEST_TEST = 400
"""The most lines of a test file; a longer one has two subjects."""


@functools.cache
def imports(module):
    """Return the modules of the package that a module imports, at its top or inside a function."""
    found = set()
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in found if name in MODULES and name != module} - {"builder"}


def test_everything_has_its_place_in_the_flow():
    there = {
        path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (any(path.glob("*.py")) and path.name != "nix")
    }
    assert there - {"__init__"} == set(FLOW)


def test_no_test_file_is_long():
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in Path(__file__).parent.rglob("*.py")}
    assert {str(path): count for path, count in lines.items() if count > LONGEST_TEST} == {}


def test_few_modules_lie_beside_the_packages():
    assert len([path for path in ROOT.glob("*.py") if not path.name.startswith("__")]) <= LOOSE


def test_no_module_imports_itself_through_others():
    # A package's `__init__` collects its own submodules, and importing one of these runs it.
    graph = {
        module: {name for name in imports(module) if not module.startswith(f"{name}.")}
        for module in MODULES
        if module not in ("builder", "builder.__main__")
    }
    list(graphlib.TopologicalSorter(graph).static_order())


def test_a_module_imports_nothing_that_comes_later():
    modules = [module for module in MODULES if module != "builder"]
    found = {
        f"{module} imports {name}"
        for module in modules
        for name in imports(module)
        if FLOW.index(name.split(".")[1]) > FLOW.index(module.split(".")[1])
    }
    assert found == set()


def test_no_command_imports_another():
    commands = frozenset(COMMANDS)
    found = {
        f"{module} imports {name}"
        for module in MODULES
        for name in imports(module)
        if name.startswith("builder.cli.") and name.split(".")[2] in commands
    }
    assert found == set()


def test_nothing_hides_an_import_from_the_interpreter():
    hiding = [module for module, path in MODULES.items() if "if TYPE_CHECKING" in path.read_text(encoding="utf-8")]
    assert not hiding


def test_only_the_command_line_reads_the_environment():
    reading = []
    for module, path in MODULES.items():
        names = {
            node.attr
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
        }
        # What runs inside a derivation is a command line of its own: its arguments are variables.
        if {"environ", "getenv"} & names and not module.startswith(("builder.cli", "builder.nix")):
            reading.append(module)
    assert not reading


NIX = sorted((ROOT / "nix").glob("*.nix"))


@pytest.mark.parametrize("path", NIX, ids=lambda path: path.stem)
def test_one_nix_file_knows_where_the_others_are(path):
    text = path.read_text(encoding="utf-8")
    assert "../tests" not in text
    # `engine.nix` is what `builder` evaluates: it asks the whole library.
    imported = set(re.findall(r"\bimport (\.[\w./-]*)", text)) - ({"./."} if path.stem == "engine" else set())
    if path.stem == "default":
        imported |= set(re.findall(r"= (\.[\w./-]*);", text))
        assert imported == {f"./{other.name}" for other in NIX if other.stem not in {"default", "engine"}} | {"./host"}
    else:
        assert imported == set()


def test_pytest_looks_into_every_folder_of_tests(pytestconfig):
    folders = {path.parent for path in (ROOT.parent / "tests").rglob("test_*.py")}
    names = {part for folder in folders for part in folder.relative_to(ROOT.parent).parts}
    left_out = [name for name in names for pattern in pytestconfig.getini("norecursedirs") if fnmatch(name, pattern)]
    assert left_out == []
