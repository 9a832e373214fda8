"""Parse compiler flags: macros, architectures, and options with their values."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from builder.config.gpus import CudaTarget, code_of
from builder.config.values import InvalidValueError
from builder.matrix import architectures
from builder.port.settings import facts

Flag = tuple[str, ...]
"""A flag, with its value if that is a separate word."""

_GENCODE = re.compile(r"(?:-gencode|--generate-code)=?(.*)")
_ARCH = re.compile(r"(?:-arch|--gpu-architecture)=?((?:sm|compute)_.*|all|all-major|native)")
_OFFLOAD = re.compile(r"--offload-arch=(.+)")
_CODE = re.compile(r"(sm|compute)_([0-9]+)([0-9])([af]?)")
_STANDARD = re.compile(r"--?std=(?:c|gnu)\+\+([0-9a-z]+)")
_OF_EVERY_BUILD = re.compile(r"-O3|((-Xcompiler|--compiler-options)[ =])?-fPIC|(-t|--threads)[ =]?[0-9]*")
"""Flags that every build passes or chooses itself."""
_MACRO = re.compile(r"-(D|U)([A-Za-z_]\w*)(?:=(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags of one language."""

    macros: Mapping[str, str | None] = field(default_factory=dict)
    """Defined macros and their values; None for one without."""
    undefined: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    """The capabilities to compile for, in the form of `cuda-capabilities`."""
    unread: tuple[str, ...] = ()
    """Architectures that are not CUDA capabilities, such as `native`, and pairs for a GPU that has other code."""
    standard: str | None = None
    rest: tuple[Flag, ...] = ()
    """All flags except macros, architectures and the standard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The flags and include folders of one source."""

    language: str
    flags: Flags
    include: tuple[str, ...] = ()
    """Folders relative to the project, or absolute ones outside."""


def group(words: Iterable[str]) -> Iterator[Flag]:
    """Yield each flag in a list of words together with its value."""
    source = iter(words)
    for word in source:
        yield (word, *itertools.islice(source, int(word in _take_a_word())))


@cache
def _take_a_word() -> frozenset[str]:
    return frozenset(facts()["take-a-word"])


def read(words: Iterable[str]) -> Flags:
    """Parse the flags of a compiler; of repeated macros, the last one counts."""
    macros: dict[str, str | None] = {}
    undefined: dict[str, None] = {}
    targets: list[str] = []
    rest: dict[Flag, None] = {}
    standard = None
    for flag in group(words):
        joined = "".join(flag) if flag[0] in {"-D", "-U", "-I"} else " ".join(flag)
        macro, found = _MACRO.fullmatch(joined), _STANDARD.fullmatch(joined.replace(" ", "=", 1))
        named = _targets("=".join(flag))
        if macro is not None and macro[1] == "D":
            undefined.pop(macro[2], None)
            macros[macro[2]] = macro[3]
        elif macro is not None:
            macros.pop(macro[2], None)
            undefined[macro[2]] = None
        elif found is not None:
            standard = found[1]
        elif named is not None:
            targets += named
        elif not _OF_EVERY_BUILD.fullmatch(joined):
            rest[(joined,) if flag[0] == "-I" else flag] = None
    known = _one_of_each_gpu(dict.fromkeys(filter(_is_capability, targets)))
    return Flags(
        macros=macros,
        undefined=tuple(undefined),
        capabilities=_with_ptx(known),
        unread=tuple(dict.fromkeys(name for name in targets if name not in known)),
        standard=standard,
        rest=tuple(rest),
    )


def _targets(flag: str) -> list[str] | None:
    """Return the capabilities or ROCm architectures in a flag; None for another flag."""
    if offload := _OFFLOAD.fullmatch(flag):
        return offload[1].split(",")
    if short := _ARCH.fullmatch(flag):
        return [_capability(short[1], virtual="")]
    if not (whole := _GENCODE.fullmatch(flag)):
        return None
    parts = dict(part.split("=", 1) for part in re.split(r",(?=\w+=)", whole[1].strip()) if "=" in part)
    virtual = parts.get("arch", "")
    codes = parts.get("code", virtual).strip("[]").split(",")
    return [_capability(code.strip("'\" "), virtual=virtual) for code in codes]


def _capability(code: str, *, virtual: str) -> str:
    """Return the capability or pair that code is made for; PTX has a mark until it is joined with its own code."""
    found, above = _CODE.fullmatch(code), _CODE.fullmatch(virtual)
    if found is None:
        return code or virtual
    same = above is not None and above.groups()[1:3] == found.groups()[1:3]
    name = f"{found[2]}.{found[3]}{found[4] or (above[4] if above is not None and same else '')}"
    if found[1] == "compute":
        return f"{name}+PTX"
    return name if above is None else code_of(f"{above[2]}.{above[3]}{above[4]}:{name}").name


def _is_capability(name: str) -> bool:
    try:
        CudaTarget(name)
    except InvalidValueError:
        return False
    return True


def _one_of_each_gpu(names: Iterable[str]) -> tuple[str, ...]:
    """Drop pairs for a GPU that another entry has code for: a config can contain only one of the two."""
    kept: dict[str, tuple[str, bool]] = {}
    for name in sorted(names, key=lambda name: ":" in name):
        made = code_of(name).place
        if ":" not in name or made not in kept.values():
            kept[name] = made
    return tuple(kept)


def _with_ptx(names: tuple[str, ...]) -> tuple[str, ...]:
    """Join the PTX of a capability with its machine code."""
    plain = sorted({name.removesuffix("+PTX") for name in names}, key=architectures.natural)
    return tuple(f"{name}+PTX" if f"{name}+PTX" in names else name for name in plain)
