"""Spell flags as keys of the config, and differences between CUDA toolkits as its conditions."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from builder.config import Config, shape
from builder.config.gpus import code_of
from builder.config.shape import Array, Record, Table, Tagged
from builder.config.source_tables import CudaComponent, Torch
from builder.config.values import Backend, Version
from builder.matrix import architectures
from builder.port import source_facts
from builder.port.flags import Flag, Flags
from builder.port.settings import facts, standard
from builder.port.source_facts import Todo
from builder.render import arguments, refusals


@lru_cache
def has(table: str, key: str) -> bool:
    """Whether a table of the config (`torch`, `kernel`, one of the top) has a key; an empty one asks for the table."""
    own = {"torch": Torch, "kernel": CudaComponent}.get(table)
    if own is None:
        own = next((_record(item.kind) for item in shape.fields(Config) if item.key == table), None)
        if own is None or not key:
            return own is not None
    return any(key == item.key for item in shape.fields(own))


def _record(kind: object) -> type | None:
    match kind:
        case Record(type=cls):
            return cls
        case Table(value=value):
            return _record(value)
        case Array(item=item):
            return _record(item)
        case Tagged(variants=variants):
            return variants[0][1]
        case _:
            return None


Key = TypeVar("Key", bound=Hashable)


def when(holds: Sequence[str], among: Sequence[str]) -> tuple[str, ...]:
    """Return the version specifiers of CUDA for the toolkits that something holds for; empty for all of them.

    Each is a range of toolkits that lie side by side; toolkits before the first count as the first, and after the last
    as the last.
    """
    ranges: list[list[str]] = []
    for index, toolkit in enumerate(among):
        if toolkit in holds:
            if ranges and index and among[index - 1] in holds:
                ranges[-1].append(toolkit)
            else:
                ranges.append([toolkit])
    if len(ranges) == 1 and len(ranges[0]) == len(among):
        return ()
    return tuple(_specifier(each, among) for each in ranges)


def _specifier(toolkits: Sequence[str], among: Sequence[str]) -> str:
    first, last = toolkits[0], among.index(toolkits[-1])
    bounds = [] if first == among[0] else [f">={first}"]
    bounds += [] if last == len(among) - 1 else [f"<{among[last + 1]}"]
    return ",".join(bounds)


def grouped(values: Mapping[str, Mapping[str, Key]]) -> dict[tuple[tuple[str, Key], ...], list[str]]:
    """Return the sources that have the same value for the same toolkits; `values` are by toolkit, then source."""
    found: dict[tuple[tuple[str, Key], ...], list[str]] = {}
    for source in sorted({source for each in values.values() for source in each}):
        history = tuple((toolkit, each[source]) for toolkit, each in values.items() if source in each)
        found.setdefault(history, []).append(source)
    return found


def union(wanted: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return capabilities that give each toolkit what it is wanted to compile; None where no one list does.

    A toolkit may compile more of what is wanted of others, but no pairs, and nothing that only some know: `10.0f`.
    """
    whole = {name.removesuffix("+PTX"): "" for names in wanted.values() for name in names}
    for names in wanted.values():
        whole |= {name.removesuffix("+PTX"): "+PTX" for name in names if name.endswith("+PTX")}
    listed = tuple(sorted((name + mark for name, mark in whole.items()), key=architectures.natural))
    for toolkit, names in wanted.items():
        missing, more = differences(listed, names, toolkit)
        if missing or any(code_of(name).special or ":" in name for name in more):
            return None
    return listed


def by_range(wanted: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the capabilities to list for each toolkit, where neighbours share a list if one serves them all."""
    ranges: list[dict[str, tuple[str, ...]]] = []
    for toolkit, names in wanted.items():
        longer = {**ranges[-1], toolkit: names} if ranges else {}
        if longer and union(longer) is not None:
            ranges[-1] = longer
        else:
            ranges.append({toolkit: names})
    return {toolkit: union(each) or names for each in ranges for toolkit, names in each.items()}


def differences(
    listed: tuple[str, ...], wanted: tuple[str, ...], toolkit: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the wanted capabilities that a toolkit does not compile for a list of a config, and the ones it adds.

    What runs the code of another capability that is compiled is not missing.
    """
    compiled = architectures.cuda(listed, Version(toolkit)).compiled
    missing = tuple(name for name in wanted if name not in compiled and not covered(name, compiled))
    plain = {name.removesuffix("+PTX") for name in wanted}
    return missing, tuple(name for name in compiled if name.removesuffix("+PTX") not in plain)


def known(names: tuple[str, ...], toolkit: str) -> tuple[str, ...]:
    """Return the capabilities that a toolkit can compile at all: nvcc refuses others."""
    generation = next((each for each in architectures.generations() if each.since <= Version(toolkit)), None)
    targets = () if generation is None else generation.targets
    return tuple(name for name in names if architectures.makes(name, targets))


def covered(capability: str, compiled: Sequence[str]) -> bool:
    """Whether GPUs of a capability run code that is compiled for a lower one of the same major version."""
    if capability != code_of(capability).gpu:
        return False
    wanted = Version(capability)
    plain = [Version(code_of(name).gpu) for name in compiled if code_of(name).name == code_of(name).gpu]
    return any(version.major == wanted.major and version <= wanted for version in plain)


Macro = str | int | bool
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_SHELL = set('\\$`",')
"""Characters that nvcc reads anew: `defines` would pass such a value as it stands, and setup.py does not."""
_RELEASE = {("NDEBUG", None)}
"""The macros that a release build defines."""
GIVEN = {"USE_ROCM", "__HIP_PLATFORM_AMD__", "HIPBLAS_V2"}
"""The macros of every source for ROCm, in torch and in a rendered project."""
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
    """The origin of flags: the line of the extension, and the list for things that have no key."""

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
        if has(table, "defines") and name != _STABLE and (gpu is None or not _SHELL & set(value or ""))
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
    yield from (f"-U{name}" for name in flags.undefined if name not in taken_away(backend))
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


def taken_away(backend: Backend | None) -> frozenset[str]:
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
