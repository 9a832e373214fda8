"""What the dataclasses of the package have in common."""

import ast

from tests.paths import ROOT

CHANGE = {
    *(
        "UnpackingBudget",
        "_Answer",
        "_Packed",
        "Index",
        "_Run",
        "NixLog",
        "Builder",
        "Caches",
        "Session",
        "Compilation",
    ),
    *("_Bundle", "_Recorder", "Gathering", "_Gathering", "_Reached", "_Message"),
}
"""What is counted or collected in, and is no value."""
WITHOUT_SLOTS = {"PinSet", "Feature", "PythonFile"}
"""What keeps something that was worked out, or is of a protocol of others."""


def test_a_value_never_changes_and_has_no_other_fields():
    found, wrong = 0, []
    for path in sorted((ROOT / "builder").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes = ast.walk(ast.parse(text)) if "dataclass(" in text else ()
        for node in (each for each in nodes if isinstance(each, ast.ClassDef)):
            for decorator in (each for each in node.decorator_list if ast.unparse(each).startswith("dataclass(")):
                options = {each.arg: ast.literal_eval(each.value) for each in decorator.keywords}
                found += 1
                if options.get("frozen", False) is (node.name in CHANGE):
                    wrong.append(f"{path.relative_to(ROOT)}: {node.name} and frozen")
                if options.get("slots", False) is (node.name in WITHOUT_SLOTS):
                    wrong.append(f"{path.relative_to(ROOT)}: {node.name} and slots")
    assert wrong == []
    assert found > 100
