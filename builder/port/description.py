"""What a project says to those who install it: its readme, and the Pythons that it is for."""

import posixpath
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from builder.config.values import InvalidValueError, ProjectPath
from builder.matrix import rows
from builder.matrix.variant import dotted
from builder.port import source_facts
from builder.port.recording import SetupCall
from builder.port.todo import Todo
from builder.wording import listed

_NO_KEY = ("entry-points", "gui-scripts", "optional-dependencies", "scripts", "urls")
_READMES = ("README.md", "README.rst", "README.txt", "README")


def readme(call: SetupCall, project: Mapping[str, Any], root: Path, todo: Todo) -> str | None:
    """Return the file that is the long description; tell a person of one that is no file."""
    named = project.get("readme")
    path = named.get("file") if isinstance(named, dict) else named
    if isinstance(path, str) and _is_readable(root, path):
        return posixpath.normpath(path)
    text = call.texts.get("long_description", "").strip()
    if not text:
        return None
    found = next((name for name in _READMES if source_facts.read(root, name).strip() == text), None)
    if found is None:
        todo.add("the long description is the text of no README: write one, and name it in wheel.readme", at=call.at)
    return found


def _is_readable(root: Path, path: str) -> bool:
    try:
        ProjectPath(path)
        (root / path).read_bytes().decode("utf-8")
    except (InvalidValueError, OSError, ValueError):
        return False
    return True


def say_pythons(call: SetupCall, project: Mapping[str, Any], todo: Todo) -> None:
    """Tell a person of Pythons that a torch has and the project refuses: wheels are for all of them."""
    declared = project.get("requires-python")
    text = call.texts.get("python_requires") or (declared if isinstance(declared, str) else "")
    try:
        wanted = SpecifierSet(text)
    except InvalidSpecifier:
        todo.add(f"'{text}' is no range of Pythons", at=call.at)
        return
    known = dict.fromkeys(dotted(tag) for row in rows() for tag in row.pythons)
    # A late patch release, so that a bound such as '>3.10.2' refuses nothing as a whole.
    refused = [python for python in known if f"{python}.99" not in wanted]
    if refused:
        todo.add(
            f"the package is for Python '{text}', which no key says: wheels are for {listed(refused)}, too", at=call.at
        )


def say_what_has_no_key(call: SetupCall, project: Mapping[str, Any], todo: Todo) -> None:
    """Tell a person of commands, extras and the like, which wheels of kernels do not have."""
    declared = [f"project.{name}" for name in _NO_KEY if project.get(name)]
    for names, at in ((call.lists.get("no_key", ()), call.at), (declared, "pyproject.toml")):
        if names:
            todo.add(f"the wheel has nothing of {listed(names)}, of which no key says anything", at=at)
