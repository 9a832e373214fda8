"""Translate flags to keys of the config, and differences between CUDA toolkits to its conditions."""

import itertools
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from builder.config.gpus import code_of
from builder.config.values import Backend, Version
from builder.matrix import architectures
from builder.port.flags import Flag, Flags
from builder.port.settings import facts, standard
from builder.port.source_facts import Place
from builder.render import arguments, refusals


def when(holds: Sequence[str], among: Sequence[str]) -> tuple[str, ...]:
    """Return version specifiers of CUDA for the toolkits in `holds`; empty for all toolkits.

    Each is a range of adjacent toolkits; older toolkits count as the first one, newer ones as the last.
    """
    ranges = [tuple(group) for inside, group in itertools.groupby(among, lambda toolkit: toolkit in holds) if inside]
    return () if ranges == [tuple(among)] else tuple(_specifier(each, among) for each in ranges)


def _specifier(toolkits: Sequence[str], among: Sequence[str]) -> str:
    first, last = toolkits[0], among.index(toolkits[-1])
    bounds = [] if first == among[0] else [f">={first}"]
    bounds += [] if last == len(among) - 1 else [f"<{among[last + 1]}"]
    return ",".join(bounds)


def union(wanted: Mapping[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return one list of capabilities with which each toolkit compiles what it should; None if there is none.

    A toolkit may also compile other toolkits' capabilities, but not pairs, and nothing that only some know: `10.0f`.
    """
    asked = {name for names in wanted.values() for name in names}
    without = {name for name in asked if f"{name}+PTX" in asked}
    listed = tuple(sorted(asked - without, key=architectures.natural))
    for toolkit, names in wanted.items():
        missing, more = differences(listed, names, toolkit)
        if missing or any(code_of(name).special or ":" in name for name in more):
            return None
    return listed


def by_range(wanted: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the list of capabilities for each toolkit; neighbours share a list if it serves both."""
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
    """Return the wanted capabilities that a toolkit does not compile with a config's list, and additional ones.

    A capability is not missing if its GPUs run the code of another compiled one.
    """
    compiled = architectures.cuda(listed, Version(toolkit)).compiled
    missing = tuple(name for name in wanted if name not in compiled and not covered(name, compiled))
    plain = {name.removesuffix("+PTX") for name in wanted}
    return missing, tuple(name for name in compiled if name.removesuffix("+PTX") not in plain)


def known(names: tuple[str, ...], toolkit: str) -> tuple[str, ...]:
    """Return the capabilities that a toolkit can compile; nvcc refuses others."""
    generation = next((each for each in architectures.generations() if each.since <= Version(toolkit)), None)
    targets = () if generation is None else generation.targets
    return tuple(name for name in names if architectures.makes(name, targets))


def covered(capability: str, compiled: Sequence[str]) -> bool:
    """Whether GPUs of a capability run code compiled for a lower one of the same major version."""
    if capability != code_of(capability).gpu:
        return False
    wanted = Version(capability)
    plain = [Version(code_of(name).gpu) for name in compiled if code_of(name).name == code_of(name).gpu]
    return any(version.major == wanted.major and version <= wanted for version in plain)


Macro = str | int | bool
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
_SHELL = set('\\$`",')
"""Characters that nvcc interprets again: `defines` passes such a value unchanged, but setup.py does not."""
_RELEASE = {("NDEBUG", None)}
"""The macros that a release build defines."""
GIVEN = {"USE_ROCM", "__HIP_PLATFORM_AMD__", "HIPBLAS_V2"}
"""The macros that torch and rendered projects define for every ROCm source."""
_STABLE = "TORCH_TARGET_VERSION"
_MAJOR, _MINOR = 56, 48
"""The bit positions of the macro's parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagKeys:
    """The keys of a table for flags."""

    defines: tuple[tuple[str, Macro], ...] = ()
    cxx_flags: tuple[str, ...] = ()
    gpu_flags: tuple[str, ...] = ()


def keys_of(cxx: Flags | None, gpu: Flags | None, *, backend: Backend, place: Place) -> FlagKeys:
    """Return the keys for the flags of the two languages; None for a language without sources.

    Flags that do not belong in a config are reported.
    """
    given = GIVEN if backend is Backend.ROCM else set()
    each = [set(macros(flags).items()) for flags in (cxx, gpu) if flags is not None]
    shared = {
        name: value
        for name, value in set.intersection(*each)
        if name not in given and name != _STABLE and (gpu is None or not _SHELL & set(value or ""))
    }
    defines = tuple(sorted((name, _value(value)) for name, value in shared.items()))
    return FlagKeys(
        defines=defines,
        cxx_flags=() if cxx is None else tuple(_words(cxx, shared, None, place)),
        gpu_flags=() if gpu is None else tuple(_words(gpu, shared, backend, place)),
    )


def macros(flags: Flags) -> dict[str, str | None]:
    """Return the macros that a release build does not define itself."""
    return {name: value for name, value in flags.macros.items() if (name, value) not in _RELEASE}


def stable_abi(flags: Flags) -> Version | None:
    """Return the stable ABI version that the sources request; None without one."""
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
    """Yield the flags for `cxx-flags`, or for the key of a backend's compiler."""
    given = GIVEN if backend is Backend.ROCM else set()
    for name, value in macros(flags).items():
        if name not in given and name not in shared and name != _STABLE and _IDENTIFIER.fullmatch(name):
            yield f"-D{name}" if value is None else f"-D{name}={value}"
    yield from (f"-U{name}" for name in flags.undefined if name not in taken_away(backend))
    if flags.standard is not None:
        yield from _standard(flags.standard, place)
    ours = set() if backend is None else set(arguments.flags_of(backend, ()))
    for flag in flags.rest:
        text = " ".join(flag)
        if text in ours:
            continue
        why = _why_left_out(flag, backend)
        if why is None:
            yield from flag
        else:
            place.say(f"'{text}' is left out{why}", near=flag[0])


def _why_left_out(flag: Flag, backend: Backend | None) -> str | None:
    """Return why a flag of `setup.py` does not belong in the config; for ROCm, it may be an nvcc flag."""
    if backend is Backend.ROCM and any(re.fullmatch(each, " ".join(flag)) for each in facts()["nvcc"]["alone"]):
        return " for ROCm: nvcc alone has it"
    return next((f": it {reason}" for reason in map(refusals.why_unsafe, flag) if reason is not None), None)


def taken_away(backend: Backend | None) -> frozenset[str]:
    """Return the macros that only torch's own flags define, so that nothing needs to undefine them."""
    if backend is None:
        return frozenset()
    own = [*facts()["hip"]["flags"], *facts()["nvcc"]["flags"]] if backend is Backend.ROCM else facts()["nvcc"]["flags"]
    return frozenset(flag.removeprefix("-D").partition("=")[0] for flag in own if flag.startswith("-D"))


def _standard(wanted: str, place: Place) -> Iterator[str]:
    """Yield the flag for a C++ standard newer than that of torch's headers, which every source gets."""
    own = standard()
    if wanted.isdigit() and int(wanted) <= own:
        if int(wanted) < own:
            text = f"'-std=c++{wanted}' is left out: the headers of torch have C++{own}, and so do the sources"
            place.say(text, near=f"-std=c++{wanted}")
        return
    yield f"-std=c++{wanted}"


def extension_name(text: str) -> str:
    """Return an extension's name for a Python module, such as `moe_c` for `pkg._moe_C`."""
    below = text.partition(".")[2] or text
    return re.sub(r"^[^a-z]+|_+$", "", re.sub(r"[^a-z0-9]+", "_", below.lower()))[:40].rstrip("_") or "more"


def table_name(text: str) -> str:
    """Return a table's name for a text, such as `pkg_ops` for `pkg.ops`."""
    return re.sub(r"[^A-Za-z0-9-]+", "_", text).strip("_") or "kernel"


def unused(name: str, taken: Container[str]) -> str:
    """Return a name, with a number if it is taken."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain((name,), numbered) if each not in taken)
