"""One way for each thing: what has a module of its own is used directly in no other, but for a reason."""

import ast
import functools

import pytest

from tests.test_layers import MODULES

WAYS = {
    "fcntl": "files",
    "hashlib": "hashes",
    "http.client": "environment.download",
    "httpx": None,
    "urllib.request": "environment.download",
    "jinja2.FileSystemLoader": "templates",
    "json.dumps": "json_text",
    "subprocess": "run",
    "tomli": "toml",
    "tomlkit": "config.toml_edit",
    "tomllib": "toml",
}
"""For each module or function of a library, the module of `builder` that alone uses it; None where no module does."""
EXCEPTIONS = {
    ("json.dumps", "loadtest.child"): "a script that runs in the environment of a cell, without builder",
    ("json.dumps", "port.recorder.script"): "a script that runs in a sandbox, without builder",
    ("json.dumps", "untrusted"): "whether a value that was read can be written again is part of its check",
}
"""Other modules that use one, each with the reason."""


@functools.cache
def used(path):
    """Return the modules that a module imports, and the names in them that it imports or reads."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.add(f"{node.value.id}.{node.attr}")
    return found


@pytest.mark.parametrize("thing", WAYS)
def test_a_thing_is_done_in_one_module(thing):
    raw = {name.removeprefix("builder.") for name, path in MODULES.items() if thing in used(path)}
    allowed = {module for things, module in EXCEPTIONS if thing == things}
    assert raw == {WAYS[thing], *allowed} - {None}
