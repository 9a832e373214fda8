"""One direction of flow: a module imports only from modules before it, so there are no cycles."""

import ast
import graphlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "builder"
MODULES = {
    ".".join(("builder", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(ROOT.rglob("*.py"))
    if path.parent != ROOT / "nix"  # scripts of derivations, no modules
}
FLOW = (
    ("builder.errors", "builder.resources", "builder.toml"),
    ("builder.config.text", "builder.run", "builder.wheel.archive"),
    ("builder.config", "builder.kernel", "builder.kernel.source_set"),
    ("builder.matrix", "builder.matrix.variant"),
    ("builder.render.project", "builder.render"),
    ("builder.job",),
    ("builder.audit", "builder.wheel.finish", "builder.loadtest"),
    ("builder.build",),
    ("builder.engine",),
    ("builder.cli",),
)
"""Stages of the flow; what a stage has never imports a later one."""


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


def stage(module):
    """Return the stage of a module or of the package that it is in; None where the flow does not name it."""
    for index, names in enumerate(FLOW):
        if any(module == name or module.startswith(f"{name}.") for name in names):
            return index
    return None


def test_no_module_imports_itself_through_others():
    # A package's `__init__` collects its own submodules, and importing one of these runs it.
    graph = {
        module: {name for name in imports(module) if not module.startswith(f"{name}.")}
        for module in MODULES
        if module not in ("builder", "builder.__main__")
    }
    list(graphlib.TopologicalSorter(graph).static_order())


@pytest.mark.parametrize("module", [module for module in MODULES if stage(module) is not None])
def test_a_module_imports_no_later_stage(module):
    later = {name for name in imports(module) if (stage(name) or 0) > stage(module)}
    assert not later


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
