"""Explain a symbol that the loader cannot find: which library has it, and what to do, by symbols.toml."""

import re
import shutil
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from builder import toml
from builder.resources import DATA
from builder.run import ask

_UNDEFINED = re.compile(r"undefined symbol: ([^\s,]+)")
_OF_TORCH = re.compile(r"(aoti_)?torch_|_Z(T[VITS]|GV)?N[rVK]*(2at|3c10|5torch)")
"""Symbols that torch would define: functions of its C interface, and whatever is in its namespaces."""
_ANOTHER_TORCH = "build for that torch (`builder matrix` lists the cells), or lower the version of 'torch.stable-abi'"
_OF_SOURCES = "list the file that defines it in a 'src' of build.toml, or compare the definition with the declaration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undefined:
    """A symbol that nothing defines, in the words of the sources."""

    text: str
    help: str


def explain(said: str) -> Undefined | None:
    """Return what is missing and what to do, if the loader's message names a missing function or variable."""
    match = _UNDEFINED.search(said)
    if match is None:
        return None
    symbol = match[1]
    if _OF_TORCH.match(symbol):
        missing, remedy = "the torch that it was loaded with does not have it", _ANOTHER_TORCH
    elif (library := owner(symbol)) is not None:
        facts = _table()["library"][library]
        missing = f"it is of '{library}', {facts['is']}, which the kernel is not linked to"
        remedy = _table()["remedy"][facts["remedy"]].format(symbol=symbol)
    else:
        missing, remedy = "nothing defines it", _OF_SOURCES
    return Undefined(text=f"undefined symbol '{_readable(symbol)}': {missing}", help=remedy)


def owner(symbol: str) -> str | None:
    """Return the library that has a symbol, by the longest prefix that is known."""
    found = [
        (len(prefix.removesuffix("[A-Z]")), library)
        for library, facts in _table()["library"].items()
        for prefix in facts["prefixes"]
        if re.match(prefix, symbol)
    ]
    return max(found)[1] if found else None


@lru_cache
def _table() -> dict[str, Any]:
    return toml.loads((DATA / "symbols.toml").read_text(encoding="utf-8"))


def _readable(symbol: str) -> str:
    """Return a symbol as the sources write it, if binutils are installed to demangle it."""
    tool = shutil.which("c++filt")
    if tool is None:
        return symbol
    return ask([tool, symbol]).stdout.strip() or symbol
