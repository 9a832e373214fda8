"""Recognize why a kernel does not load: no device, an undefined symbol, or an error of another package.

The facts are in devices.toml and symbols.toml.
"""

import re
import shutil
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from builder import toml
from builder.resources import DATA
from builder.run import ask

_DEVICES, _SYMBOLS = DATA / "devices.toml", DATA / "symbols.toml"
_UNDEFINED = re.compile(r"undefined symbol: ([^\s,]+)")
_OF_TORCH = re.compile(r"(aoti_)?torch_|_Z(T[VITS]|GV)?N[rVK]*(2at|3c10|5torch)")
"""Symbols that torch would define: functions of its C interface, and names in its namespaces."""
_ANOTHER_TORCH = "build for that torch (`builder matrix` lists the cells), or lower the version of 'torch.stable-abi'"
_OF_SOURCES = "list the file that defines it in a 'src' of build.toml, or compare the definition with the declaration"
_MOST = 3


@lru_cache
def _facts(file: Path) -> dict[str, Any]:
    return toml.loads(file.read_text(encoding="utf-8"))


def hidden() -> Mapping[str, str]:
    """Return variables that hide a machine's devices, so that a test has the same result with and without them."""
    return dict(_facts(_DEVICES)["hidden"])


def asks_for_a_device(link: Mapping[str, Any]) -> bool:
    """Whether an exception means that there is no device, by its type and the module that raised it."""
    origin = link["origins"][-1] if link["origins"] else ""
    known = any(
        row["type"] in link["types"]
        and f"{origin}.".startswith(f"{row['origin']}.")
        and row.get("says", "") in link["text"]
        for row in _facts(_DEVICES)["absent"]
    )
    of_loader = "ImportError" in link["types"] or "OSError" in link["types"]
    return known or (of_loader and lacks_a_driver(link["text"]))


def lacks_a_driver(said: str) -> bool:
    """Whether the loader's message says that a driver's library is missing."""
    return any(
        said.startswith(name) and "cannot open shared object" in said for name in _facts(_DEVICES)["library"]["driver"]
    )


def explain(said: str) -> tuple[str, str] | None:
    """Return the missing function or variable in the loader's message, and the remedy; None if it names none."""
    match = _UNDEFINED.search(said)
    if match is None:
        return None
    symbol = match[1]
    if _OF_TORCH.match(symbol):
        missing, remedy = "the torch that it was loaded with does not have it", _ANOTHER_TORCH
    elif (library := owner(symbol)) is not None:
        facts = _facts(_SYMBOLS)["library"][library]
        missing = f"it is of '{library}', {facts['is']}, which the kernel is not linked to"
        remedy = _facts(_SYMBOLS)["remedy"][facts["remedy"]].format(symbol=symbol)
    else:
        missing, remedy = "nothing defines it", _OF_SOURCES
    demangle = shutil.which("c++filt")
    readable = symbol if demangle is None else ask([demangle, symbol]).stdout.strip() or symbol
    return f"undefined symbol '{readable}': {missing}", remedy


def owner(symbol: str) -> str | None:
    """Return the library that defines a symbol, by the longest known prefix."""
    found = [
        (len(prefix.removesuffix("[A-Z]")), library)
        for library, facts in _facts(_SYMBOLS)["library"].items()
        for prefix in facts["prefixes"]
        if re.match(prefix, symbol)
    ]
    return max(found)[1] if found else None


def raised_in(traceback: str, folders: Iterable[Path]) -> tuple[str, ...]:
    """Return the packages in `folders` at the end of a traceback, such as `tilelang 0.1.8`.

    The last one raised the exception. Empty if the last line is in none of them: then the kernel itself raised it.
    """
    lines = re.findall(r'^ *File "([^"\n]+)", line [0-9]+', traceback, re.MULTILINE)
    found: dict[str, None] = {}
    for file in reversed(lines):
        folder = next((folder for folder in folders if Path(file).is_relative_to(folder)), None)
        name = None if folder is None else _distribution(Path(file).relative_to(folder).as_posix(), folder)
        if name is None:
            break
        found[name] = None
    return tuple(reversed(tuple(found)[:_MOST]))


def _distribution(file: str, folder: Path) -> str | None:
    from importlib import metadata  # noqa: PLC0415  only a load test that failed asks

    for each in metadata.distributions(path=[str(folder)]):
        if any(path.as_posix() == file for path in each.files or ()):
            return f"{each.name} {each.version}"
    return None
