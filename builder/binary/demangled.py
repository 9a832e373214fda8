"""Names of C++ as its source has them, by the library of C++ that this machine has."""

import contextlib
import ctypes
from collections.abc import Callable
from functools import cache, partial

_LONGEST = 1 << 15
_LONGEST_SHOWN = 1 << 13
_LIBRARIES = ("libstdc++.so.6", "libc++.1.dylib", "libc++abi.so.1")


def demangled(name: str) -> str:
    """Return a name as its source has it; the name itself where it is none of C++, is too long, or nothing reads it."""
    read = _reader()
    if read is None or not name.startswith("_Z") or len(name) > _LONGEST or not name.isascii():
        return name
    return read(name)[:_LONGEST_SHOWN]


@cache
def _reader() -> Callable[[str], str] | None:
    for library in _LIBRARIES:
        with contextlib.suppress(OSError, AttributeError):
            demangle = getattr(ctypes.CDLL(library), "__cxa_demangle")
            demangle.restype, demangle.argtypes = ctypes.c_void_p, (ctypes.c_char_p, *[ctypes.c_void_p] * 3)
            return partial(_read, demangle)
    return None


def _read(demangle: Callable[..., int | None], name: str) -> str:
    found = demangle(name.encode(), None, None, None)
    if not found:
        return name
    try:
        return ctypes.string_at(found).decode("utf-8", "backslashreplace")
    finally:
        free = ctypes.CDLL(None).free
        free.argtypes = (ctypes.c_void_p,)
        free(found)
