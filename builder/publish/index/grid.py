"""A grid of frameworks and platforms for the wheels of one version, and the changes since the version before."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path
from urllib.parse import quote

from builder import wording
from builder.config import Framework, Version
from builder.config.gpus import Gpu, known
from builder.make import wheel_record as record
from builder.matrix.variant import Variant
from builder.publish.index import picks, simple, words
from builder.publish.index.derived import FILES, FamilyWheel
from builder.publish.index.picks import Offer, Pick, Place
from builder.publish.index.simple import NO_UPLOADS, Uploads
from builder.publish.index.words import DeviceCode
from builder.wheel.kernel_wheel import KernelWheel

SBOM_SUFFIX = ".cdx.json"
TOP = "../../"
"""The way from the page of a kernel to the top of the site."""


_MOST_FILES = 10
"""Changed files that are named."""
_GENERATED = "_ops"
"""The beginning of the names of modules that every build writes anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridWheel:
    """A wheel, as a person sees it."""

    variant: str
    serves: str
    """The framework and platform that it is built for, in words."""
    filename: str
    url: str
    size: str
    sha256: str
    requirement: str
    """Its whole version, quoted for a shell."""
    archs: tuple[str, ...]
    """The architectures that it says it has device code for."""
    code: DeviceCode
    """The GPUs that run its device code, as far as it tells."""
    families: tuple[tuple[str, str, str], ...]
    """The families of GPUs that have a wheel of their own, with where its index is and its size."""
    load_test: str
    """The outcome of its load test, in words."""
    check: str
    """The line that checks its hash."""
    bill: str | None
    """The address of its bill of materials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """The place where a row meets one column, or several that one wheel serves."""

    span: int
    wheels: tuple[GridWheel, ...]
    """The wheels there are; mostly one, or none."""
    why: str = ""
    """Why there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """A row of the grid: one compute platform on one system."""

    compute: str
    system: str
    cells: tuple[GridCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The wheels of one version."""

    version: str
    wheels: Sequence[KernelWheel]
    """By the names of their files."""
    offer: Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes that a user of the version before should know."""

    since: str
    """The version before."""
    new: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """One version of a kernel."""

    version: str
    columns: tuple[str, ...]
    rows: tuple[GridRow, ...]
    wheels: tuple[GridWheel, ...]
    """All wheels; one that no installer prefers is in no cell."""
    changes: Changes | None
    """The changes since the version before; None for the first version."""
    released: str
    """The day on which it came into the index; empty where that is not known."""


def grids(
    wheels: Iterable[KernelWheel],
    *,
    code: Mapping[Path, DeviceCode],
    split: Mapping[Path, tuple[FamilyWheel, ...]] = {},
    uploaded: Uploads = NO_UPLOADS,
) -> tuple[Grid, ...]:
    """Return a grid for each version, the newest first; `split` are the wheels for one family of GPUs each."""
    versions: dict[str, list[KernelWheel]] = {}
    for kernel_wheel in sorted(wheels, key=lambda kernel_wheel: kernel_wheel.wheel.version, reverse=True):
        versions.setdefault(kernel_wheel.wheel.version.public, []).append(kernel_wheel)
    releases = [_release(version, found) for version, found in versions.items()]
    return tuple(
        _grid(release, before=before, code=code, split=split, uploaded=uploaded)
        for release, before in zip_longest(releases, releases[1:])
    )


def _release(version: str, wheels: Iterable[KernelWheel]) -> Release:
    ordered = sorted(wheels, key=lambda kernel_wheel: kernel_wheel.wheel.path.name)
    return Release(version=version, wheels=ordered, offer=picks.offer(ordered))


def _grid(
    release: Release,
    *,
    before: Release | None,
    code: Mapping[Path, DeviceCode],
    split: Mapping[Path, tuple[FamilyWheel, ...]],
    uploaded: Uploads,
) -> Grid:
    wheels = release.wheels
    shown = {
        each.wheel.path.name: _grid_wheel(each, code=code[each.wheel.path], split=split.get(each.wheel.path, ()))
        for each in wheels
    }
    offer = release.offer
    plain = all(each.variant.framework is Framework.CTYPES for each in wheels)
    return Grid(
        version=release.version,
        columns=("any framework",) if plain else tuple(f"torch {torch}" for torch in offer.torches),
        rows=tuple(
            GridRow(
                compute=words.compute(place.compute),
                system=words.system(place.system),
                cells=tuple(_one_cell(offer, place, shown) if plain else _cells(offer, place, shown)),
            )
            for place in offer.places
        ),
        wheels=tuple(shown.values()),
        changes=None if before is None else changes_between(before, release, code),
        released=simple.day_of(wheels, uploaded),
    )


def _one_cell(offer: Offer, place: Place, shown: Mapping[str, GridWheel]) -> Iterator[GridCell]:
    """Return the cell of a place for wheels that need no torch: the same wheel whatever the column."""
    pick = next(pick for pick in offer.picks if pick.place == place)
    yield GridCell(span=1, wheels=tuple(shown[each.wheel.path.name] for each in pick.wheels))


def _cells(offer: Offer, place: Place, shown: Mapping[str, GridWheel]) -> Iterator[GridCell]:
    by_torch = {torch: pick for pick in offer.picks if pick.place == place for torch in pick.torches}

    def content(torch: Version) -> tuple[Pick | None, str]:
        return by_torch.get(torch), "" if torch in by_torch else why_empty(torch, place)

    for (pick, why), torches in groupby(offer.torches, key=content):
        wheels = () if pick is None else tuple(shown[each.wheel.path.name] for each in pick.wheels)
        yield GridCell(span=len(list(torches)), wheels=wheels, why=why)


def why_empty(torch: Version, place: Place) -> str:
    """Say why a place has no wheel."""
    return "not built" if picks.in_matrix(torch, place) else "no PyTorch"


def serves(variant: Variant) -> str:
    """Say what a wheel is built for."""
    place = words.compute(variant.compute)
    where = place if variant.system is None else f"{place}, {words.system(variant.system)}"
    match variant.framework:
        case Framework.TORCH_NOARCH:
            return f"any torch, {where}"
        case Framework.CTYPES:
            return f"any framework, {where}"
        case Framework.TVM_FFI:
            return f"tvm-ffi {variant.version}, {where}"
        case Framework.TORCH:
            return f"torch {variant.version}{' and newer' if variant.stable else ''}, {where}"


def _grid_wheel(kernel_wheel: KernelWheel, *, code: DeviceCode, split: Iterable[FamilyWheel]) -> GridWheel:
    name = kernel_wheel.wheel.path.name
    url = f"{TOP}{FILES}/{quote(name)}"
    return GridWheel(
        variant=str(kernel_wheel.variant),
        serves=serves(kernel_wheel.variant),
        filename=name,
        url=url,
        size=wording.size(kernel_wheel.size),
        sha256=kernel_wheel.sha256,
        requirement=shlex.quote(f"{kernel_wheel.wheel.name}=={kernel_wheel.wheel.version}"),
        archs=kernel_wheel.metadata.archs or (),
        code=code,
        families=tuple((_family(each), f"{TOP}{each.root}/", wording.size(each.size)) for each in split),
        load_test=_load_test(kernel_wheel),
        check=f"echo {shlex.quote(f'{kernel_wheel.sha256}  {name}')} | sha256sum --check",
        bill=None if bill_member(kernel_wheel) is None else f"{url}{SBOM_SUFFIX}",
    )


def _family(wheel: FamilyWheel) -> str:
    """Return the name of a family, and a GPU of each architecture: `sm90 (H100)`."""
    return f"{wheel.family} ({', '.join(gpu.names[0] for gpu in wheel.family.gpus)})"


def bill_member(kernel_wheel: KernelWheel) -> str | None:
    """Return the name of the bill of materials in a wheel; None where it has none."""
    name = f"{kernel_wheel.wheel.dist_info}/sboms/{kernel_wheel.wheel.name}{SBOM_SUFFIX}"
    return name if name in kernel_wheel.wheel.members else None


def _load_test(kernel_wheel: KernelWheel) -> str:
    """Return the load test in the record of a wheel; the wheel itself says nothing of the machine that tested it."""
    known = record.read(kernel_wheel.wheel.path, sha256=kernel_wheel.sha256)
    return "not known, as it has no record" if known is None else known.words


def changes_between(older: Release, newer: Release, code: Mapping[Path, DeviceCode]) -> Changes:
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
        *(words.gpu_title(gpu) for gpu in known() if gpu in running - unsure),
        *(f"requires {wording.escaped(requirement)}" for requirement in simple.requires(newest)),
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
