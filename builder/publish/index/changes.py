"""What is different between a version of a kernel and the one before it, as far as their wheels tell a user."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder import wording
from builder.config.gpus import Gpu, known
from builder.publish.index import chooser, words
from builder.publish.index.gpus import DeviceCode, said
from builder.publish.index.picks import Offer
from builder.wheel.kernel_wheel import KernelWheel

_MOST_FILES = 10
"""Changed files that are named."""
_GENERATED = "_ops"
"""How the names of modules begin that every build writes anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The wheels of one version."""

    version: str
    wheels: Sequence[KernelWheel]
    """By the names of their files."""
    offer: Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a user of one version should know who comes from another."""

    since: str
    """The version before."""
    new: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...]


def between(older: Release, newer: Release, code: Mapping[Path, DeviceCode]) -> Changes:
    """Compare what two versions serve, what they require, their Python files and their sizes."""
    unsure = frozenset(gpu for each in (*older.wheels, *newer.wheels) for gpu in code[each.wheel.path].silent)
    before, after = (_traits(release, code, unsure) for release in (older, newer))
    pairs = _pairs(older, newer)
    was, now = _python_files(pairs, 0), _python_files(pairs, 1)
    return Changes(
        since=older.version,
        new=(*_lacking(after, before), *_named("file", [name for name in now if name not in was])),
        gone=(*_lacking(before, after), *_named("file", [name for name in was if name not in now])),
        changed=(*_license(older, newer), *_changed_files(was, now), *_sizes(pairs)),
    )


def _traits(release: Release, code: Mapping[Path, DeviceCode], unsure: frozenset[Gpu]) -> dict[str, None]:
    """Return what a version serves and requires, in words and in a fixed order; nothing of GPUs that are `unsure`."""
    newest = _newest(release)
    running = {answer.gpu for each in release.wheels for answer in code[each.wheel.path].codes if answer.runs}
    found = [
        *(f"PyTorch {torch}" for torch in release.offer.torches),
        *(words.compute(compute) for compute in release.offer.computes),
        *(words.system(system) for system in release.offer.systems),
        *(said(gpu) for gpu in known() if gpu in running - unsure),
        *(f"requires {wording.escaped(requirement)}" for requirement in chooser.requires(newest)),
    ]
    return dict.fromkeys(found)


def _lacking(these: Mapping[str, None], those: Mapping[str, None]) -> Iterator[str]:
    return (trait for trait in these if trait not in those)


def _newest(release: Release) -> KernelWheel:
    return max(release.wheels, key=lambda each: (each.wheel.version, each.wheel.path.name))


def _license(older: Release, newer: Release) -> Iterator[str]:
    was, now = (_newest(release).metadata.license or "not said" for release in (older, newer))
    if was != now:
        yield f"license {wording.escaped(now)}, before {wording.escaped(was)}"


def _pairs(older: Release, newer: Release) -> tuple[tuple[KernelWheel, KernelWheel], ...]:
    """Return the wheels of both versions that are for the same cell."""
    before = {str(each.variant): each for each in older.wheels}
    return tuple((before[name], each) for each in newer.wheels if (name := str(each.variant)) in before)


def _python_files(pairs: Sequence[tuple[KernelWheel, KernelWheel]], side: int) -> dict[str, str]:
    """Return path -> hash of the Python files of the first pair; those of other cells are the same sources."""
    if not pairs:
        return {}
    files = sorted(pairs[0][side].metadata.digests.items())
    return {name: digest for name, digest in files if name.endswith(".py") and not name.startswith(_GENERATED)}


def _changed_files(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    return _named("file", [name for name in now if name in was and was[name] != now[name]])


def _named(what: str, names: Sequence[str]) -> Iterator[str]:
    """Return names in words; many are counted."""
    shown = [f"{what} {wording.escaped(name)}" for name in names[:_MOST_FILES]]
    more = len(names) - _MOST_FILES
    yield from (*shown, f"{more} more {what}s") if more > 0 else shown


def _sizes(pairs: Sequence[tuple[KernelWheel, KernelWheel]]) -> Iterator[str]:
    was, now = (sum(pair[side].size for pair in pairs) for side in (0, 1))
    if wording.size(was) != wording.size(now):
        which = "the wheel" if len(pairs) == 1 else f"the {len(pairs)} wheels"
        yield f"size {wording.size(now)}, before {wording.size(was)}, of {which} that both versions have"
