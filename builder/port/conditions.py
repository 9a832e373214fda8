"""Differences between the runs for several CUDA toolkits, and the condition that tells them apart."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from builder.config.gpus import code_of
from builder.config.values import Version
from builder.matrix import architectures

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
    """Return what a toolkit does not compile of what is wanted, and what it compiles besides, for a list of a config.

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
