"""The tables about torch itself: C functions of the stable ABI, headers with Python's, the C++ standard."""

import json
import re
import textwrap
from collections.abc import Iterator

from builder import json_text, toml
from builder.config import Version
from builder.torch_day.proposal import FileEdit, Line
from builder.torch_day.release import Release

SHIM = "torch-shim.json"
PYTHON_HEADERS = "python-headers.toml"
STANDARDS = "cpp-extension.toml"
_WIDTH = 118
_BY_TORCH = re.compile(r"by torch (\d+\.\d+)'s own")


def shim(release: Release, text: str) -> FileEdit:
    """Return the table of C functions with those that a release brought."""
    table: dict[str, dict[str, str]] = json.loads(text)
    source: dict[str, str] = {}
    for library, names in release.shim.items():
        known = table.setdefault(library, {})
        for name in names:
            if name not in known or release.minor < Version(known[name].removeprefix("<=")):
                known[name] = str(release.minor)
                source[f'"{name}": "{release.minor}"'] = f"torch/lib/{library}.so of {release.file}"
        table[library] = dict(sorted(known.items()))
    new = json_text.document(table, indent=0)
    lines = tuple(Line(text=line, source=source.get(line.rstrip(","), "a comma")) for line in new.splitlines())
    return FileEdit(name=SHIM, old=text, new=lines)


def gone(release: Release, text: str) -> Iterator[str]:
    """Name the C functions that the table has and the release lacks."""
    table: dict[str, dict[str, str]] = json.loads(text)
    for library, names in release.shim.items():
        since = {name: Version(each.removeprefix("<=")) for name, each in table.get(library, {}).items()}
        for name in sorted(name for name, each in since.items() if each <= release.minor and name not in names):
            yield f"{library}.so lacks {name}, which {SHIM} has: kernels that use it do not load"


def python_headers(release: Release, text: str) -> FileEdit:
    """Return the list of headers with those of a newer release than it is of; one that only older ones have stays."""
    old: list[str] = toml.loads(text)["torch"]
    new = sorted({*old, *release.python_headers})
    lines = [Line(text=line) for line in text.splitlines()]
    listed = _BY_TORCH.search(text)
    if new == sorted(old) or (listed is not None and release.minor <= Version(listed[1])):
        return FileEdit(name=PYTHON_HEADERS, old=text, new=tuple(lines))
    start = next(number for number, line in enumerate(lines) if line.text == "torch = [")
    source = f"#include lines of the headers in {release.file}"
    head = [_by_torch(line, release, source) for line in lines[:start]]
    wrapped = textwrap.wrap(
        ", ".join(toml.spelled(name) for name in new) + ",", _WIDTH, break_long_words=False, break_on_hyphens=False
    )
    body = [Line(text=f"  {line}", source=source) for line in wrapped]
    return FileEdit(name=PYTHON_HEADERS, old=text, new=(*head, lines[start], *body, Line(text="]")))


def _by_torch(line: Line, release: Release, source: str) -> Line:
    match = _BY_TORCH.search(line.text)
    if match is None:
        return line
    return Line(text=line.text.replace(match[0], f"by torch {release.minor}'s own"), source=source)


def standards(release: Release, text: str) -> FileEdit:
    """Return the C++ standards with that of a release, where it is another than the one that holds for it."""
    known = toml.loads(text)["standard"]
    holding = next((entry["cxx"] for entry in known if Version(entry["torch"]) <= release.minor), None)
    lines = tuple(Line(text=line) for line in text.splitlines())
    if release.standard is None or release.standard == holding:
        return FileEdit(name=STANDARDS, old=text, new=lines)
    place = next(number for number, line in enumerate(lines) if line.text == "[[standard]]")
    for number, line in enumerate(lines):
        match = re.fullmatch(r'torch = "([0-9.]+)"', line.text)
        if match is not None and Version(match[1]) > release.minor:
            place = number + 3  # behind the entry of a later torch
    source = f"TorchConfig.cmake of {release.file}"
    texts = ("[[standard]]", f'torch = "{release.minor}"', f"cxx = {release.standard}", "")
    new = tuple(Line(text=each, source=source) for each in texts)
    return FileEdit(name=STANDARDS, old=text, new=(*lines[:place], *new, *lines[place:]))
