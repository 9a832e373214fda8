"""The part of a site that one kernel is: it is made of the wheels of that kernel alone, in any process."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from builder.config import Backend
from builder.hashes import sha256
from builder.make import wheel_record as record
from builder.matrix.variant import backend_of
from builder.publish import families
from builder.publish.families import Family
from builder.publish.index import derived, grid, people, simple, variants
from builder.publish.index.people import Card
from builder.publish.index.simple import FILES, Listing
from builder.publish.index.table import Environment, Place, Split, Table, Uploads, fitting
from builder.wheel.kernel_wheel import KernelWheel

Indexes = defaultdict[str, list[Listing]]
"""The wheels that each index lists, by its folder in the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a site, which are the same for all its kernels."""

    base_url: str | None = None
    """Where the site will be served; None shows a word to replace."""
    with_variants: bool = False
    """Whether the wheels are there as wheel variants, too."""
    with_families: bool = False
    """Whether there are indexes for each family of GPUs, too."""
    uploaded: Uploads = field(default_factory=dict)
    """When the wheels came into the index."""
    before: Mapping[str, tuple[Path, str]] = field(default_factory=dict)
    """The wheels that were made of others for the site before, by their paths in it, with their digests."""
    environments: frozenset[Environment] = frozenset()
    """The environments that some wheel of the site may fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kernel of a site."""

    name: str
    """The kernel, as installers call it."""
    wheels: tuple[KernelWheel, ...]
    """Its wheels without their members, which nothing asks for any more."""
    environments: tuple[Environment, ...]
    """The environments that a wheel of it fits."""
    roots: tuple[str, ...]
    """The folders of the indexes that have it."""
    fixed: Mapping[str, bytes | Path]
    """The files that never change, by their paths in the site."""
    pages: Mapping[str, bytes]
    """The files that may change: in the indexes for installers, the records of its wheels, the page for people."""
    made: Mapping[str, str]
    """The digests of all these files but the wheels."""
    card: Card
    places: tuple[Place, ...]
    """The compute platforms with their systems."""

    @classmethod
    def of(cls, wheels: Sequence[KernelWheel], settings: Settings) -> "Part":
        """Return the part that all wheels of one kernel are.

        Raises:
            WheelError: one is for a family of GPUs, or cannot be split into such.
        """
        for each in wheels:
            families.require_whole(each)
        uploaded = settings.uploaded
        listings = {each.wheel.path: Listing.of(each, uploaded.get(each.wheel.path.name)) for each in wheels}
        fit = fitting(wheels, settings.environments)
        indexes: Indexes = defaultdict(list, simple=list(listings.values()))
        for environment, own in fit.items():
            indexes[simple.root_for(environment)] = [listings[each.wheel.path] for each in own]
        chosen = variants.indexes(wheels, fit, listings, before=settings.before) if settings.with_variants else {}
        indexes |= {root: list(each.listings) for root, each in chosen.items()}
        split = _add_families(fit, listings, indexes) if settings.with_families else {}
        table = Table.of(wheels, split=split, uploaded=uploaded)
        fixed = dict(_fixed(wheels, indexes))
        pages: dict[str, bytes] = {}
        for root, listed in indexes.items():
            pages |= simple.project(root, listed, tables=chosen[root].tables if root in chosen else {})
        pages |= _records(wheels)
        pages[f"kernels/{table.name}/index.html"] = people.kernel(table, base_url=settings.base_url)
        given = {each.path for each in listings.values()}
        made = {each.path: each.sha256 for each in chain.from_iterable(indexes.values()) if each.path not in given}
        made |= {path: sha256(content) for path, content in {**fixed, **pages}.items() if isinstance(content, bytes)}
        return cls(
            name=table.name,
            wheels=tuple(replace(each, wheel=replace(each.wheel, members={})) for each in wheels),
            environments=tuple(fit),
            roots=tuple(indexes),
            fixed=fixed,
            pages=pages,
            made=made,
            card=Card.of(table),
            places=table.places,
        )


def _add_families(
    fit: Mapping[Environment, Sequence[KernelWheel]], listings: Mapping[Path, Listing], indexes: Indexes
) -> Split:
    """Add the indexes for each family of GPUs, and return the wheels that were made for them."""
    found: dict[Path, Mapping[Family, Listing]] = {}
    split: dict[Path, dict[Family, tuple[str, int]]] = {}
    for environment, wheels in fit.items():
        for wheel in wheels if backend_of(environment[1]) is Backend.CUDA else ():
            path = wheel.wheel.path
            if path not in found:
                found[path] = derived.by_family(wheel, listings[path])
            for family, listing in found[path].items():
                root = simple.root_for(environment, str(family))
                indexes[root].append(listing)
                if listing is not listings[path]:
                    split.setdefault(path, {})[family] = (root, listing.size)
    return split


def _fixed(wheels: Iterable[KernelWheel], indexes: Indexes) -> Iterator[tuple[str, bytes | Path]]:
    """Yield the files that never change: those that indexes list, their METADATA, and bills of materials."""
    for listing in chain.from_iterable(indexes.values()):
        yield listing.path, listing.content
        yield f"{listing.path}{simple.METADATA_SUFFIX}", listing.core
    for each in wheels:
        bill = grid.bill_member(each)
        if bill is not None:
            yield f"{FILES}/{each.wheel.path.name}{grid.SBOM_SUFFIX}", each.wheel.members[bill].read()


def _records(wheels: Iterable[KernelWheel]) -> dict[str, bytes]:
    """Return the records of wheels, which may change: a later load test may come further."""
    known = (each for each in wheels if record.read(each.wheel.path, sha256=each.sha256) is not None)
    paths = (record.path_of(each.wheel.path) for each in known)
    return {f"{FILES}/{path.name}": path.read_bytes() for path in paths}
