"""Which modules a Python file names in its imports, without running it."""

import ast


def imported(source: bytes) -> frozenset[str]:
    """Return the top-level modules that a file imports anywhere in it; none if it cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            names.add(node.module)
    return frozenset(name.partition(".")[0] for name in names)
