"""Find namespaces in mangled C++ names (Itanium ABI), by the grammar and not by text search."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_NAMESPACES = r"N[rVK]*[ROH]?(2at|3c10|5torch|4c10d|6caffe2)"
_ROOT = re.compile(_NAMESPACES)
_FIRST_IS_ROOT = re.compile(r"_Z(?:T[VITS]|GV)?" + _NAMESPACES)
_IDENTIFIER = re.compile(r"L?([0-9]+)")
# Each repetition has a limit, so that matching does not scan the rest of the name again and again.
_HARMLESS = re.compile(r"S[0-9A-Z]{0,9}_|T[0-9]{0,9}_|L[a-z]n?[0-9]{1,40}E|A[0-9]{1,20}_|__[0-9]{1,9}_|_[0-9]|[^0-9]")
_NUMBER = re.compile(r"[0-9]+")
_MOST_DIGITS = 9
_LONGEST_MEMBER = 256
_DOUBT = re.compile(r"L[NS0-9]|E[0-9]+_|f[pL]|D[vFB]|T[chv]")
"""Places where a number may not be a length but a value, an offset or a width."""
_FIRST_AGAIN = re.compile(r"NS_(?=[0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class RootName:
    """A name in one of torch's namespaces."""

    namespace: str
    member: str | None
    """The name after the namespace; None for an operator."""

    def __str__(self) -> str:
        return f"{self.namespace}::{self.member or 'operator'}"


def torch_names(symbol: str) -> Iterator[RootName]:
    """Yield each name whose outermost namespace is one of torch's, from one mangled name.

    `_ZN2at6TensorD1Ev`, `_ZTIN3c105ErrorE` and `_ZNSt6vectorIN2at6TensorEE…` have one; `_ZN4mine2at3getEv`,
    `_ZNKSt6vector2atEm` and an identifier that contains such letters have none.
    """
    if not symbol.startswith("_Z"):
        return
    inside = _Identifiers(symbol)
    for match in _ROOT.finditer(symbol):
        if not inside.have(match.start()):
            yield RootName(namespace=match[1][1:], member=_identifier(symbol, match.end()))
    first = _FIRST_IS_ROOT.match(symbol)
    if first is not None:  # then `S_` stands for that namespace
        inside = _Identifiers(symbol)
        for again in _FIRST_AGAIN.finditer(symbol, first.end()):
            if not inside.have(again.start()):
                yield RootName(namespace=first[1][1:], member=_identifier(symbol, again.end()))


def _identifier(symbol: str, at: int) -> str | None:
    match = _IDENTIFIER.match(symbol, at)
    if match is None:
        return None
    return symbol[match.end() : match.end() + min(_length(symbol, match[1]), _LONGEST_MEMBER)]


def _length(symbol: str, digits: str) -> int:
    """Parse a length; a number that is too large becomes the length of the whole name."""
    return int(digits) if len(digits) <= _MOST_DIGITS else len(symbol)


class _Identifiers:
    """The places of the `<length><identifier>`s in a name. Queries from left to right read the name once."""

    def __init__(self, symbol: str) -> None:
        self._symbol = symbol
        self._at = 2
        self._identifier = (0, 0)
        doubt = _DOUBT.search(symbol)
        self._doubt = len(symbol) if doubt is None else doubt.end()

    def have(self, position: int) -> bool:
        """Whether `position` is certainly inside an identifier."""
        while self._at <= position:
            self._next()
        start, end = self._identifier
        return start < position < end and start < self._doubt

    def _next(self) -> None:
        """Go to the end of the next token."""
        number = _NUMBER.match(self._symbol, self._at)
        if number is not None:
            self._identifier = (number.start(), number.end() + _length(self._symbol, number[0]))
            self._at = self._identifier[1]
            return
        token = _HARMLESS.match(self._symbol, self._at)
        self._at = token.end() if token else self._at + 1
