"""Which modules a Python file names in its imports, without running it."""

import ast


def imported(source: bytes) -> frozenset[str]:
    """Return the top-level modules that a file imports, wherever it does; none of a file that cannot be read."""
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
