"""What the dataclasses of the package have in common."""

import ast

import pytest

from tests.paths import ROOT

CHANGE = {"Budget", "_Answer", "_Packed", "Index", "_Run", "NixLog", "Builder", "Caches", "Session", "_Compilation"}
"""What is counted or collected in, and is no value."""
WITHOUT_SLOTS = {"PinSet", "Feature"}
"""What keeps something that was worked out, or is of a protocol of others."""


def dataclasses():
    for path in sorted((ROOT / "builder").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
                if ast.unparse(decorator).startswith("dataclass("):
                    options = {each.arg: ast.literal_eval(each.value) for each in decorator.keywords}
                    yield pytest.param(node.name, options, id=f"{path.relative_to(ROOT)}: {node.name}")


@pytest.mark.parametrize(("name", "options"), list(dataclasses()))
def test_a_value_never_changes_and_has_no_other_fields(name, options):
    assert options.get("frozen", False) is (name not in CHANGE)
    assert options.get("slots", False) is (name not in WITHOUT_SLOTS)
