"""Compiler flags, taken apart: macros, architectures, and the words that belong together."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from builder.config.gpus import CudaTarget, code_of
from builder.config.values import InvalidValueError

Flag = tuple[str, ...]
"""A flag with the word that is its value, where that stands by itself."""

_TAKES_A_WORD = frozenset(
    (
        "--compiler-bindir",
        "--compiler-options",
        "--cudafe-options",
        "--default-stream",
        "--diag-error",
        "--diag-suppress",
        "--diag-warn",
        "--fatbin-options",
        "--generate-code",
        "--gpu-architecture",
        "--gpu-code",
        "--linker-options",
        "--maxrregcount",
        "--ptxas-options",
        "--split-compile",
        "--std",
        "--threads",
        "-D",
        "-I",
        "-MF",
        "-MQ",
        "-MT",
        "-U",
        "-Xarch_device",
        "-Xarch_host",
        "-Xclang",
        "-Xcompiler",
        "-Xcudafe",
        "-Xfatbin",
        "-Xlinker",
        "-Xnvlink",
        "-Xpreprocessor",
        "-Xptxas",
        "-arch",
        "-arch-list",
        "-c",
        "-ccbin",
        "-code",
        "-default-stream",
        "-diag-error",
        "-diag-suppress",
        "-diag-warn",
        "-gencode",
        "-idirafter",
        "-include",
        "-iquote",
        "-isystem",
        "-maxrregcount",
        "-mllvm",
        "-o",
        "-split-compile",
        "-std",
        "-t",
        "-x",
    )
)
_GENCODE = re.compile(r"(?:-gencode|--generate-code)=?(.*)")
_ARCH = re.compile(r"(?:-arch|--gpu-architecture)=?((?:sm|compute)_.*|all|all-major|native)")
_OFFLOAD = re.compile(r"--offload-arch=(.+)")
_CODE = re.compile(r"(sm|compute)_([0-9]+)([0-9])([af]?)")
_THREADS = re.compile(r"(?:-t|--threads)=?[0-9]*")
_STANDARD = re.compile(r"--?std=(?:c|gnu)\+\+([0-9a-z]+)")
_PIC = frozenset(
    {"-fPIC", "-Xcompiler -fPIC", "-Xcompiler=-fPIC", "--compiler-options -fPIC", "--compiler-options=-fPIC"}
)
_MACRO = re.compile(r"-(D|U)([A-Za-z_]\w*)(?:=(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags of one language."""

    macros: Mapping[str, str | None] = field(default_factory=dict)
    """Defined macros and their values; None for one without."""
    undefined: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    """The capabilities that code is made for, as `cuda-capabilities` has them."""
    unread: tuple[str, ...] = ()
    """Architectures that are not CUDA capabilities, such as `native`, and pairs for a GPU that has other code."""
    standard: str | None = None
    rest: tuple[Flag, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The words of all flags but macros, architectures and the standard."""
        return tuple(word for flag in self.rest for word in flag)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The flags and the include folders of one source."""

    language: str
    flags: Flags
    include: tuple[str, ...] = ()
    """Folders of the project, relative to it, and others as they are."""


def group(words: Iterable[str]) -> Iterator[Flag]:
    """Yield the flags of a list of words, with their values."""
    source = iter(words)
    for word in source:
        if word in _TAKES_A_WORD:
            following = next(source, None)
            yield (word,) if following is None else (word, following)
        else:
            yield (word,)


def read(words: Iterable[str]) -> Flags:
    """Take the flags of a compiler apart; of macros, the last word holds."""
    macros: dict[str, str | None] = {}
    undefined: dict[str, None] = {}
    architectures: list[str] = []
    rest: dict[Flag, None] = {}
    standard = None
    for flag in group(words):
        joined = "".join(flag) if flag[0] in {"-D", "-U", "-I"} else " ".join(flag)
        macro, found = _MACRO.fullmatch(joined), _STANDARD.fullmatch(joined.replace(" ", "=", 1))
        named = _gencode(flag)
        if macro is not None:
            _apply(macro, macros, undefined)
        elif found is not None:
            standard = found[1]
        elif named is not None:
            architectures += named
        elif not _is_ours(joined):
            rest[(joined,) if flag[0] == "-I" else flag] = None
    known = _one_of_each_gpu(dict.fromkeys(name for name in architectures if _is_capability(name)))
    return Flags(
        macros=macros,
        undefined=tuple(undefined),
        capabilities=_with_ptx(known),
        unread=tuple(dict.fromkeys(name for name in architectures if name not in known)),
        standard=standard,
        rest=tuple(rest),
    )


def _apply(macro: "re.Match[str]", macros: dict[str, str | None], undefined: dict[str, None]) -> None:
    if macro[1] == "D":
        undefined.pop(macro[2], None)
        macros[macro[2]] = macro[3]
    else:
        macros.pop(macro[2], None)
        undefined[macro[2]] = None


def _is_ours(joined: str) -> bool:
    """Whether every build passes a flag, or chooses it itself."""
    return joined in _PIC or joined == "-O3" or _THREADS.fullmatch(joined.replace(" ", "=", 1)) is not None


def _gencode(flag: Flag) -> list[str] | None:
    """Return the capabilities of a flag that names architectures; None for another flag."""
    joined = "=".join(flag)
    whole = _GENCODE.fullmatch(joined)
    offload = _OFFLOAD.fullmatch(joined)
    if offload is not None:
        return offload[1].split(",")
    if whole is not None:
        return list(_of_gencode(whole[1].strip()))
    short = _ARCH.fullmatch(joined)
    if short is None:
        return None
    return [_capability(short[1], virtual=None)]


def _of_gencode(text: str) -> Iterator[str]:
    parts = dict(part.split("=", 1) for part in re.split(r",(?=\w+=)", text) if "=" in part)
    arch = parts.get("arch", "")
    for code in parts.get("code", arch).strip("[]").split(","):
        yield _capability(code.strip("'\" "), virtual=arch)


def _capability(code: str, *, virtual: str | None) -> str:
    """Return the capability or pair that code is made for; PTX has a mark until it is joined with its own code."""
    found, above = _CODE.fullmatch(code), _CODE.fullmatch(virtual or "")
    if found is None:
        return code or (virtual or "")
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
    """Leave out pairs for a GPU that something else is code for: a config has one of the two."""
    kept: dict[str, tuple[str, bool]] = {}
    for name in sorted(names, key=lambda name: ":" in name):
        made = code_of(name).place
        if ":" not in name or made not in kept.values():
            kept[name] = made
    return tuple(kept)


def _with_ptx(names: tuple[str, ...]) -> tuple[str, ...]:
    """Join the PTX of a capability with its code."""
    virtual = {name.removesuffix("+PTX") for name in names if name.endswith("+PTX")}
    plain = dict.fromkeys(name.removesuffix("+PTX") for name in names)
    return tuple(f"{name}+PTX" if name in virtual else name for name in sorted(plain, key=_order))


def _order(name: str) -> tuple[int, int, str]:
    major, _, minor = name.partition(".")
    return int(major), int(minor[0]), minor[1:]
