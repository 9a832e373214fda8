"""Flags as keys of the config have them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.config.values import Backend, Version
from builder.port import source_facts, words
from builder.port.flags import Flag, Flags
from builder.port.settings import facts, standard
from builder.port.todo import Todo
from builder.render import arguments, refusals

Macro = str | int | bool
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_SHELL = set('\\$`",')
"""Characters that nvcc reads anew: `defines` would pass such a value as it stands, and setup.py does not."""
_RELEASE = {("NDEBUG", None)}
"""What a release build defines."""
GIVEN = {"USE_ROCM", "__HIP_PLATFORM_AMD__", "HIPBLAS_V2"}
"""What every source for ROCm is compiled with, by torch and by a rendered project."""
_STABLE = "TORCH_TARGET_VERSION"
_MAJOR, _MINOR = 56, 48
"""Bits of the parts of that macro."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagKeys:
    """The keys of a table that hold flags."""

    defines: tuple[tuple[str, Macro], ...] = ()
    cxx_flags: tuple[str, ...] = ()
    gpu_flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where flags come from: the extension's line, and who is told what has no key."""

    root: Path
    at: str
    todo: Todo

    def line(self, text: str) -> str:
        """Return the line that has a text."""
        return source_facts.line_of(self.root, self.at, text)


def keys_of(cxx: Flags | None, gpu: Flags | None, *, backend: Backend, table: str, place: Place) -> FlagKeys:
    """Return the keys for the flags of the two languages; None for a language without sources.

    What must not be in a config, or is decided by whoever builds, is told to a person.
    """
    given = GIVEN if backend is Backend.ROCM else set()
    each = [
        {name: value for name, value in macros(flags).items() if name not in given}
        for flags in (cxx, gpu)
        if flags is not None
    ]
    shared = {name: value for name, value in each[0].items() if all((name, value) in other.items() for other in each)}
    shared = {
        name: value
        for name, value in shared.items()
        if words.has(table, "defines") and name != _STABLE and (gpu is None or not _SHELL & set(value or ""))
    }
    defines = tuple(sorted((name, _value(value)) for name, value in shared.items()))
    return FlagKeys(
        defines=defines,
        cxx_flags=() if cxx is None else tuple(_words(cxx, shared, None, place)),
        gpu_flags=() if gpu is None else tuple(_words(gpu, shared, backend, place)),
    )


def macros(flags: Flags) -> dict[str, str | None]:
    """Return the macros that a release build does not define by itself."""
    return {name: value for name, value in flags.macros.items() if (name, value) not in _RELEASE}


def stable_abi(flags: Flags) -> Version | None:
    """Return the version of the stable ABI that sources are compiled for; None where they name none."""
    text = (flags.macros.get(_STABLE) or "").rstrip("uUlL")
    try:
        number = int(text, 0)
    except ValueError:
        return None
    return Version(f"{number >> _MAJOR}.{number >> _MINOR & 0xFF}")


def _value(value: str | None) -> Macro:
    if value is None or value == "1":
        return True
    return int(value) if _NUMBER.fullmatch(value) else value


def _words(flags: Flags, shared: dict[str, str | None], backend: Backend | None, place: Place) -> Iterator[str]:
    """Yield the words of `cxx-flags`, or of the flags of a backend's compiler."""
    given = GIVEN if backend is Backend.ROCM else set()
    for name, value in macros(flags).items():
        if name not in given and name not in shared and name != _STABLE and _IDENTIFIER.fullmatch(name):
            yield f"-D{name}" if value is None else f"-D{name}={value}"
    yield from (f"-U{name}" for name in flags.undefined if name not in _taken_away(backend))
    if flags.standard is not None:
        yield from _standard(flags.standard, place)
    ours = set() if backend is None else set(arguments.flags_of(backend, ()))
    for flag in flags.rest:
        if " ".join(flag) not in ours and _is_known(flag, backend, place) and _is_safe(flag, place):
            yield from flag


def _is_known(flag: Flag, backend: Backend | None, place: Place) -> bool:
    """Whether the compiler of a backend knows a flag that `setup.py` gives it; for ROCm, it may be one of nvcc."""
    text = " ".join(flag)
    if backend is not Backend.ROCM or not any(re.fullmatch(each, text) for each in facts()["nvcc"]["alone"]):
        return True
    place.todo.add(f"'{text}' is left out for ROCm: nvcc alone has it", at=place.line(flag[0]))
    return False


def _taken_away(backend: Backend | None) -> frozenset[str]:
    """Return the macros that only torch's own flags define: without these, nothing has to be taken back."""
    if backend is None:
        return frozenset()
    own = [*facts()["hip"]["flags"], *facts()["nvcc"]["flags"]] if backend is Backend.ROCM else facts()["nvcc"]["flags"]
    return frozenset(flag.removeprefix("-D").partition("=")[0] for flag in own if flag.startswith("-D"))


def _standard(wanted: str, place: Place) -> Iterator[str]:
    """Yield the flag for a standard that is newer than that of torch's headers, which every source gets."""
    own = standard()
    if wanted.isdigit() and int(wanted) <= own:
        if int(wanted) < own:
            text = f"'-std=c++{wanted}' is left out: the headers of torch have C++{own}, and so do the sources"
            place.todo.add(text, at=place.line(f"-std=c++{wanted}"))
        return
    yield f"-std=c++{wanted}"


def _is_safe(flag: Flag, place: Place) -> bool:
    found = next(
        (reason for _, reason in refusals.unsafe_flags({(str(i),): word for i, word in enumerate(flag)})), None
    )
    if found is not None:
        place.todo.add(f"'{' '.join(flag)}' is left out: it {found}", at=place.line(flag[0]))
    return found is None


def extension_name(text: str) -> str:
    """Return a name of an extension for that of a Python module, such as `moe_c` for `pkg._moe_C`."""
    below = text.partition(".")[2] or text
    return re.sub(r"^[^a-z]+|_+$", "", re.sub(r"[^a-z0-9]+", "_", below.lower()))[:40].rstrip("_") or "more"


def table_name(text: str) -> str:
    """Return a name of a table for a text, such as `pkg_ops` for `pkg.ops`."""
    return re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_") or "kernel"
