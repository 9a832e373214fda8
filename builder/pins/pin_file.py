"""Read the pin file, and report every rule that it breaks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from builder import toml
from builder.errors import BuilderError
from builder.matrix.variant import built_systems

ANY = "any"
"""Stands for every Python, in a part whose wheels do not depend on it."""

_TOP: dict[str, type] = {"pythons": list, "environment": dict, "part": list, "wheel": dict}
_PART: dict[str, type] = {
    "name": str, "about": str, "version": str, "compute": list, "requires": list, "only": list, "index": str,
    "tested": bool, "wheels": dict,
}  # fmt: skip
_WHEEL: dict[str, type] = {"name": str, "version": str, "sha256": str}
_FILE = re.compile(
    r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)(-\d[^-]*)?"
    r"-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl"
)


class PinsError(BuilderError):
    """The pin file breaks its own rules."""


def read(file: Path) -> dict[str, Any]:
    """Return the tables of the pin file.

    Raises:
        PinsError: with every problem of the file.
    """
    if file.exists() and not file.is_file():  # a FIFO would block for ever
        raise PinsError(f"the pin file '{file}' is not a file", help="name the pin file")
    try:
        table = toml.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PinsError(f"cannot read the pin file '{file}': {error.strerror}", help="reinstall builder") from error
    except (toml.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PinsError(f"the pin file is not TOML: {error}\n  --> {file}", help="restore it") from error
    found = tuple(problems(table))
    if found:
        listed = "".join(f"\n  {problem}" for problem in found)
        count = "a problem" if len(found) == 1 else f"{len(found)} problems"
        raise PinsError(
            f"the pin file has {count}\n  --> {file}{listed}",
            help="restore the file, or correct it and run `builder pins check`",
        )
    return table


def problems(table: dict[str, Any]) -> Iterator[str]:
    """Yield each rule that `table` breaks, with the key."""
    found = [*_typed("", table, _TOP, required=set(_TOP))]
    if not found:
        parts = list(enumerate(table["part"]))
        found += [problem for number, part in parts for problem in _part(f"part[{number}]", part)]
        found += [problem for file, facts in table["wheel"].items() for problem in _wheel(file, facts)]
    if not found:
        found += [*_recipes(table), *_references(table)]
    yield from found


def serves(file: str, *, system: str, python: str) -> bool:
    """Whether a wheel can be installed for a Python (or `any`) on a system.

    Raises:
        ValueError: the file name is not that of a wheel.
    """
    match = _FILE.fullmatch(file)
    if match is None:
        raise ValueError(file)
    pythons, platforms = match["python"].split("."), match["platform"].split(".")
    platform = any(built_systems()[system].platforms.fullmatch(tag) for tag in platforms)
    generic = any(tag.startswith("py") for tag in pythons)
    return platform and (generic or python in pythons or (match["abi"] == "abi3" and python != ANY))


def _typed(key: str, table: Any, types: dict[str, type], *, required: set[str]) -> Iterator[str]:
    if not isinstance(table, dict):
        yield f"{key}: must be a table"
        return
    for name in sorted(required - table.keys()):
        yield f"{key}.{name}: missing".lstrip(".")
    for name, value in table.items():
        if name not in types:
            yield f"{key}.{name}: unknown key; known are {', '.join(types)}".lstrip(".")
        elif not isinstance(value, types[name]):
            yield f"{key}.{name}: must be a {types[name].__name__}, not {value!r}".lstrip(".")
        elif types[name] is list and name != "part" and not _is_strings(value):
            yield f"{key}.{name}: must be a list of strings".lstrip(".")


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _part(key: str, part: Any) -> Iterator[str]:
    yield from _typed(key, part, _PART, required={"name", "about", "requires"})
    if not isinstance(part, dict):
        return
    index = part.get("index", "https://x")
    if isinstance(index, str) and (urlsplit(index).scheme != "https" or "@" in urlsplit(index).netloc):
        yield f"{key}.index: must be an https address without user name, not {index!r}"
    wheels = part.get("wheels", {})
    if not isinstance(wheels, dict):
        return
    for system, pythons in wheels.items():
        where = f"{key}.wheels.{system}"
        if system not in built_systems():
            yield f"{where}: unknown system; known are {', '.join(built_systems())}"
            continue
        if not isinstance(pythons, dict):
            yield f"{where}: must be a table"
            continue
        for python, files in pythons.items():
            if not re.fullmatch(r"any|cp3\d+", python):
                yield f"{where}.{python}: must be a Python tag such as 'cp311', or 'any'"
            if not _is_strings(files):
                yield f"{where}.{python}: must be a list of file names"


def _wheel(file: str, facts: Any) -> Iterator[str]:
    key = f'wheel."{file}"'
    yield from _typed(key, facts, _WHEEL, required=set(_WHEEL))
    match = _FILE.fullmatch(file)
    if match is None:
        yield f"{key}: is not the file name of a wheel"
    if not isinstance(facts, dict) or match is None:
        return
    sha256 = facts.get("sha256", "0" * 64)
    if isinstance(sha256, str) and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        yield f"{key}.sha256: must be 64 hexadecimal digits, not {sha256!r}"
    if normalized(match["name"]) != facts.get("name", normalized(match["name"])):
        yield f"{key}.name: is {facts['name']!r}, and the file's is {normalized(match['name'])!r}"
    if match["version"] != facts.get("version", match["version"]):
        yield f"{key}.version: is {facts['version']!r}, and the file's is {match['version']!r}"


def normalized(name: str) -> str:
    """Normalise a package name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _recipes(table: dict[str, Any]) -> Iterator[str]:
    names = {part["name"] for part in table["part"]}
    for kind, recipes in table["environment"].items():
        if not isinstance(recipes, list) or not all(isinstance(recipe, list) for recipe in recipes):
            yield f"environment.{kind}: must be a list of lists of parts"
            continue
        for reference in (reference for recipe in recipes for reference in recipe):
            if not isinstance(reference, str) or reference.partition("/")[0] not in names:
                yield f"environment.{kind}: no part is named {reference!r}"


def _references(table: dict[str, Any]) -> Iterator[str]:
    used: dict[str, str | None] = {}
    for number, part in enumerate(table["part"]):
        for system, pythons in part.get("wheels", {}).items():
            for python, files in pythons.items():
                where = f"part[{number}].wheels.{system}.{python}"
                for file in files:
                    if file not in table["wheel"]:
                        yield f"{where}: {file!r} has no [wheel] entry, so no hash"
                    elif not serves(file, system=system, python=python):
                        yield f"{where}: {file!r} cannot be installed there"
                    if used.setdefault(file, part.get("index")) != part.get("index"):
                        yield f"{where}: {file!r} is listed with another index elsewhere"
    for file in sorted(table["wheel"].keys() - used.keys()):
        yield f'wheel."{file}": no part uses it'
