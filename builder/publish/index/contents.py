"""The contents of a site of wheels: indexes for installers, pages for people, and the manifest of all."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path

from builder import json_text
from builder.config import Backend
from builder.errors import BuilderError
from builder.hashes import sha256
from builder.make import wheel_record as record
from builder.matrix.variant import backend_of
from builder.publish import families
from builder.publish.families import Family
from builder.publish.index import derived, grid, people, simple
from builder.publish.index.derived import VARIANTS
from builder.publish.index.people import Card
from builder.publish.index.simple import FILES, Listing
from builder.publish.index.table import Environment, Split, Table, Uploads, environment_names, fitting
from builder.wheel.archive import WheelError
from builder.wheel.kernel_wheel import KernelWheel

MANIFEST = "builder-index.json"
UPLOADED = "uploaded"
"""The key of the manifest for the times at which wheels came."""
_FORMAT = 1
UNFINISHED = b'{"builder-index": 1, "files": {}, "made": {}}\n'
"""The manifest until all the rest is there."""
_VARIANTS = f"{VARIANTS}/simple"
Indexes = defaultdict[str, list[Listing]]
"""The wheels that each index lists, by its folder in the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A file of the site: the wheels and what belongs to them never change, the rest does."""

    content: bytes | Path
    fixed: bool


def build(
    wheels: Sequence[KernelWheel],
    *,
    base_url: str | None = None,
    with_variants: bool = False,
    with_families: bool = False,
    uploaded: Uploads | None = None,
) -> dict[str, Page]:
    """Return every file of the site of some wheels, by its path: wheels first, the manifest last.

    Args:
        wheels: What the site has.
        base_url: Where it will be served; None shows a word to replace.
        with_variants: Whether the wheels are there as wheel variants, too.
        with_families: Whether there are indexes for each family of GPUs, too.
        uploaded: When they came into the index.

    Raises:
        BuilderError: two kernels have one name for an installer, two wheels are of one version and variant, or one is
            for a family of GPUs or cannot be split into such.
    """
    for each in wheels:
        families.require_whole(each)
    _check_names(wheels)
    _check_variants(wheels)
    uploaded = uploaded or {}
    ordered = sorted(wheels, key=lambda each: (each.wheel.name, each.wheel.path.name))
    listings = {each.wheel.path: Listing.of(each, uploaded.get(each.wheel.path.name)) for each in ordered}
    fit = fitting(ordered)
    indexes: Indexes = defaultdict(list, simple=list(listings.values()))
    for environment, own in fit.items():
        indexes[simple.root_for(environment)] = [listings[each.wheel.path] for each in own]
    if with_variants:
        indexes[_VARIANTS] = [derived.as_variant(each, listings[each.wheel.path]) for each in ordered]
    split = _add_families(fit, listings, indexes) if with_families else {}
    tables = [
        Table.of(own, split=split, uploaded=uploaded)
        for _name, own in groupby(ordered, key=lambda each: each.wheel.name)
    ]
    fixed = dict(_fixed(ordered, indexes))
    changing: dict[str, bytes] = {}
    for root, listed in indexes.items():
        changing |= simple.index(root, listed)
    if with_variants:
        changing |= {f"{_VARIANTS}/{path}": content for path, content in derived.variant_indexes(ordered).items()}
    changing |= _records(ordered)
    changing |= {f"kernels/{each.name}/index.html": people.kernel(each, base_url=base_url) for each in tables}
    cards = [Card.of(each) for each in tables]
    places = chain.from_iterable(each.places for each in tables)
    changing |= people.front(cards, environment_names(fit), places=places, base_url=base_url)
    changing[MANIFEST] = _manifest(ordered, uploaded, {**fixed, **changing})
    return {path: Page(content=content, fixed=True) for path, content in fixed.items()} | {
        path: Page(content=content, fixed=False) for path, content in changing.items()
    }


def _add_families(
    fit: Mapping[Environment, Sequence[KernelWheel]], listings: Mapping[Path, Listing], indexes: Indexes
) -> Split:
    """Add the indexes for each family of GPUs, and return the wheels that were made for them."""
    found: dict[Path, Mapping[Family, Listing]] = {}
    split: dict[Path, dict[Family, tuple[str, int]]] = {}
    problems: dict[str, str] = {}
    for environment, wheels in fit.items():
        for wheel in wheels if backend_of(environment[1]) is Backend.CUDA else ():
            path = wheel.wheel.path
            if path not in found:
                try:
                    found[path] = derived.by_family(wheel, listings[path])
                except WheelError as error:
                    problems.setdefault(wheel.wheel.name, str(error))
                    found[path] = {}
            for family, listing in found[path].items():
                root = simple.root_for(environment, str(family))
                indexes[root].append(listing)
                if listing is not listings[path]:
                    split.setdefault(path, {})[family] = (root, listing.size)
    if problems:
        raise WheelError("\nerror: ".join(problems[name] for name in sorted(problems)))
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


def _check_names(wheels: Iterable[KernelWheel]) -> None:
    spelled: dict[str, str] = {}
    for each in wheels:
        other = spelled.setdefault(each.wheel.name, each.kernel)
        if other != each.kernel:
            raise BuilderError(
                f"'{other}' and '{each.kernel}' are one name to an installer: '{each.wheel.name}'",
                help="rename one of the kernels, or give each an index of its own",
            )


def _check_variants(wheels: Iterable[KernelWheel]) -> None:
    """Refuse wheels that differ only in the platform tag: an installer would choose by it, and a person could not."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for each in wheels:
        key = (each.wheel.name, str(each.wheel.version), str(each.variant))
        found.setdefault(key, []).append(str(each.wheel.path))
    double = "".join(
        f"\n  {name} {version}, {variant}: {', '.join(paths)}"
        for (name, version, variant), paths in sorted(found.items())
        if len(paths) > 1
    )
    if double:
        raise BuilderError(
            f"two wheels are of one version and variant{double}",
            help="keep the one you mean, or build it with another --wheel-version",
        )


def _manifest(wheels: Iterable[KernelWheel], uploaded: Uploads, files: Mapping[str, bytes | Path]) -> bytes:
    """Name every file of the site: the wheels, and what is made of them. Nothing else is published."""
    digests = {each.wheel.path.name: each.sha256 for each in wheels}
    made = {path: sha256(content) for path, content in files.items() if isinstance(content, bytes)}
    times = {name: uploaded[name] for name in digests if name in uploaded}
    table: dict[str, object] = {
        "builder-index": _FORMAT,
        "files": dict(sorted(digests.items())),
        "made": dict(sorted(made.items())),
        **({UPLOADED: dict(sorted(times.items()))} if times else {}),
    }
    return json_text.document(table, indent=1).encode()
