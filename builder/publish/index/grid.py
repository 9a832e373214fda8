"""The matrix of one version of a kernel as a grid: what exists, what a wheel serves, and why a place is empty."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path
from urllib.parse import quote

from builder import wording
from builder.config import Framework, Version
from builder.make import wheel_record as record
from builder.matrix.variant import Variant
from builder.publish.index import changes, picks, uploads, words
from builder.publish.index.by_family import FILES, FamilyWheel
from builder.publish.index.changes import Changes, Release
from builder.publish.index.gpus import DeviceCode
from builder.publish.index.picks import Offer, Pick, Place
from builder.publish.index.uploads import Uploads
from builder.wheel.kernel_wheel import KernelWheel

SBOM_SUFFIX = ".cdx.json"
TOP = "../../"
"""What leads from the page of a kernel to the top of the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridWheel:
    """A wheel, as a person sees it."""

    variant: str
    serves: str
    """What it is built for, in words."""
    filename: str
    url: str
    size: str
    sha256: str
    requirement: str
    """Its whole version, quoted for a shell."""
    archs: tuple[str, ...]
    """The architectures that it says it has device code for."""
    code: DeviceCode
    """What its device code says of GPUs."""
    families: tuple[tuple[str, str, str], ...]
    """The families of GPUs that have a wheel of their own, with where its index is and its size."""
    load_test: str
    """What became of its load test, in words."""
    check: str
    """The line that checks its hash."""
    bill: str | None
    """Where its bill of materials is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """Where a row meets one column, or several that one wheel serves."""

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
class Grid:
    """One version of a kernel."""

    version: str
    columns: tuple[str, ...]
    rows: tuple[GridRow, ...]
    wheels: tuple[GridWheel, ...]
    """All wheels; one that no installer prefers is in no cell."""
    changes: Changes | None
    """What is different from the version before; None of the first."""
    released: str
    """The day on which it came into the index; empty where that is not known."""


def grids(
    wheels: Iterable[KernelWheel],
    *,
    code: Mapping[Path, DeviceCode],
    split: Mapping[Path, tuple[FamilyWheel, ...]] = {},
    uploaded: Uploads = uploads.NONE,
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
        changes=None if before is None else changes.between(before, release, code),
        released=uploads.day_of(wheels, uploaded),
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
