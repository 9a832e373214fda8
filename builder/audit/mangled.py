"""Find namespaces in mangled C++ names (Itanium ABI), by their grammar and not by their text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAMESPACES = r"N[rVK]*[ROH]?(2at|3c10|5torch|4c10d|6caffe2)"
_ROOT = re.compile(_NAMESPACES)
_FIRST_IS_ROOT = re.compile(r"_Z(?:T[VITS]|GV)?" + _NAMESPACES)
_IDENTIFIER = re.compile(r"L?([0-9]+)")
_HARMLESS = re.compile(r"S[0-9A-Z]*_|T[0-9]*_|L[a-z]n?[0-9]+E|A[0-9]+_|__[0-9]+_|_[0-9]|[^0-9]")
_NUMBER = re.compile(r"[0-9]+")
_DOUBT = re.compile(r"L[NS0-9]|E[0-9]+_|f[pL]|D[vFB]|T[chv]")
"""Where a number may be something else than a length: a value, an offset, a width."""
_FIRST_AGAIN = re.compile(r"NS_(?=[0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class RootName:
    """A name in one of torch's namespaces."""

    namespace: str
    member: str | None
    """What follows the namespace; None for an operator."""

    def __str__(self) -> str:
        return f"{self.namespace}::{self.member or 'operator'}"


def torch_names(symbol: str) -> Iterator[RootName]:
    """Yield every name in a mangled name whose outermost namespace is one of torch's.

    `_ZN2at6TensorD1Ev`, `_ZTIN3c105ErrorE` and `_ZNSt6vectorIN2at6TensorEE…` have one; `_ZN4mine2at3getEv`,
    `_ZNKSt6vector2atEm` and an identifier with such letters in it have none.
    """
    if not symbol.startswith("_Z"):
        return
    for match in _ROOT.finditer(symbol):
        if not _inside_identifier(symbol, match.start()):
            yield RootName(namespace=match[1][1:], member=_identifier(symbol, match.end()))
    first = _FIRST_IS_ROOT.match(symbol)
    if first is not None:  # then `S_` means that namespace
        for again in _FIRST_AGAIN.finditer(symbol, first.end()):
            if not _inside_identifier(symbol, again.start()):
                yield RootName(namespace=first[1][1:], member=_identifier(symbol, again.end()))


def _identifier(symbol: str, at: int) -> str | None:
    match = _IDENTIFIER.match(symbol, at)
    return None if match is None else symbol[match.end() : match.end() + int(match[1])]


def _inside_identifier(symbol: str, position: int) -> bool:
    """Whether `position` is surely within a `<length><identifier>`; in doubt it is not."""
    at = 2
    while at < position:
        number = _NUMBER.match(symbol, at)
        if number is None:
            token = _HARMLESS.match(symbol, at)
            at = token.end() if token else at + 1
            continue
        end = number.end() + int(number[0])
        if position < end:
            return _DOUBT.search(symbol, 0, number.start()) is None
        at = end
    return False
