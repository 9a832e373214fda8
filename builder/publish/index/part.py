"""What a site has of one kernel, and what the pages of all kernels say of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.hashes import sha256
from builder.make import wheel_record as record
from builder.matrix.variant import Variant
from builder.publish import families
from builder.publish.index import by_family, cards, choice, gpus, grid, people, picks, simple, uploads, variants
from builder.publish.index.by_family import ByFamily
from builder.publish.index.cards import Card
from builder.publish.index.choice import Environment
from builder.publish.index.simple import Listing
from builder.publish.index.uploads import Uploads
from builder.wheel.kernel_wheel import KernelWheel

FILES = by_family.FILES
VARIANTS = "variants"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A file of the site: the wheels and what belongs to them never change, the rest does."""

    content: bytes | Path
    fixed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What all kernels of a site have in common."""

    environments: frozenset[Environment]
    """Those that some wheel may fit."""
    base_url: str | None = None
    """Where the site will be served; None shows a word to replace."""
    with_variants: bool = False
    """Whether the wheels are there as wheel variants, too."""
    with_families: bool = False
    """Whether there are indexes for each family of GPUs, too."""

    @classmethod
    def of(
        cls, found: Iterable[Variant], *, base_url: str | None, with_variants: bool, with_families: bool = False
    ) -> "Settings":
        """Return the settings of a site that has wheels of these variants."""
        return cls(
            environments=choice.environments(frozenset(found)),
            base_url=base_url,
            with_variants=with_variants,
            with_families=with_families,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """What is to be known of a wheel besides its pages."""

    path: Path
    project: str
    kernel: str
    """The kernel's name, as its config spells it."""
    version: str
    variant: str
    sha256: str
    uploaded: str | None
    """When it came into the index, if that is known."""
    not_for_release: str | None
    """Why it must not be published; None if it may be."""

    @classmethod
    def of(cls, kernel_wheel: KernelWheel, uploaded: str | None) -> "Listed":
        """Return that of a wheel."""
        return cls(
            path=kernel_wheel.wheel.path,
            project=kernel_wheel.wheel.name,
            kernel=kernel_wheel.kernel,
            version=str(kernel_wheel.wheel.version),
            variant=str(kernel_wheel.variant),
            sha256=kernel_wheel.sha256,
            uploaded=uploaded,
            not_for_release=kernel_wheel.metadata.not_for_release,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kernel of a site."""

    name: str
    wheels: tuple[Listed, ...]
    environments: tuple[Environment, ...]
    """Those that a wheel of it fits."""
    families: tuple[str, ...]
    """Where in the site the indexes for families of GPUs are that have it."""
    fixed: Mapping[str, bytes | Path]
    """Files that never change, by their path in the site."""
    indexes: Mapping[str, bytes]
    """Its pages in the indexes for installers."""
    records: Mapping[str, bytes]
    """The records of its wheels, which may change: a later load test may come further."""
    page: bytes
    """The page for people."""
    made: Mapping[str, str]
    """The digest of each file but the wheels."""
    card: Card
    values: frozenset[tuple[str, str]]
    """Every value that its page and its card let one choose, with what it is a value of."""


def page_path(name: str) -> str:
    """Return where in the site the page of a kernel is."""
    return f"kernels/{name}/index.html"


def part(wheels: Sequence[KernelWheel], settings: Settings, uploaded: Uploads = uploads.NONE) -> Part:
    """Return the part of a site that one kernel is, by all of its wheels.

    Raises:
        WheelError: one is for a family of GPUs, or cannot be split into such.
    """
    name = wheels[0].wheel.name
    for each in wheels:
        families.require_whole(each)
    fixed = _fixed(wheels)
    listings = {each.wheel.path: Listing.of(each, uploaded.get(each.wheel.path.name)) for each in wheels}
    fitting = choice.fitting(wheels, settings.environments)
    indexes = simple.project(name, tuple(listings.values()), root="simple", files=FILES)
    for environment, own in fitting.items():
        listed = [listings[each.wheel.path] for each in own]
        indexes |= simple.project(name, listed, root=simple.root_for(environment), files=FILES)
    if settings.with_variants:
        _add_variants(name, wheels, uploaded, fixed, indexes)
    split = ByFamily()
    if settings.with_families:
        split = by_family.add(name, fitting, listings, uploaded, (fixed, indexes))
    records = _records(wheels)
    offer = picks.offer(wheels)
    code = gpus.read(wheels)
    card = cards.card(wheels, offer, code, uploaded)
    page = people.kernel(wheels, offer, code=code, split=split.wheels, uploaded=uploaded, base_url=settings.base_url)
    everything = {**fixed, **indexes, **records, page_path(name): page}
    return Part(
        name=name,
        wheels=tuple(Listed.of(each, uploaded.get(each.wheel.path.name)) for each in wheels),
        environments=tuple(fitting),
        families=split.roots,
        fixed=fixed,
        indexes=indexes,
        records=records,
        page=page,
        made=digests(everything),
        card=card,
        values=people.values(offer, card),
    )


def digests(files: Mapping[str, bytes | Path]) -> dict[str, str]:
    """Return the digests of those files that are made, and not wheels."""
    return {path: sha256(content) for path, content in files.items() if isinstance(content, bytes)}


def _fixed(wheels: Sequence[KernelWheel]) -> dict[str, bytes | Path]:
    fixed: dict[str, bytes | Path] = {}
    for kernel_wheel in wheels:
        name = kernel_wheel.wheel.path.name
        fixed[f"{FILES}/{name}"] = kernel_wheel.wheel.path
        fixed[f"{FILES}/{name}{simple.METADATA_SUFFIX}"] = kernel_wheel.core
        bill = grid.bill_member(kernel_wheel)
        if bill is not None:
            fixed[f"{FILES}/{name}{grid.SBOM_SUFFIX}"] = kernel_wheel.wheel.members[bill].read()
    return fixed


def _records(wheels: Sequence[KernelWheel]) -> dict[str, bytes]:
    known = (each for each in wheels if record.read(each.wheel.path, sha256=each.sha256) is not None)
    paths = (record.path_of(each.wheel.path) for each in known)
    return {f"{FILES}/{path.name}": path.read_bytes() for path in paths}


def _add_variants(
    name: str,
    wheels: Sequence[KernelWheel],
    uploaded: Uploads,
    fixed: dict[str, bytes | Path],
    indexes: dict[str, bytes],
) -> None:
    files = f"{FILES}/{VARIANTS}"
    listings = []
    for kernel_wheel in wheels:
        listing, content = variants.convert(kernel_wheel, uploaded.get(kernel_wheel.wheel.path.name))
        listings.append(listing)
        fixed[f"{files}/{listing.filename}"] = content
        fixed[f"{files}/{listing.filename}{simple.METADATA_SUFFIX}"] = listing.core
    root = f"{VARIANTS}/simple"
    indexes |= simple.project(name, listings, root=root, files=files)
    indexes |= {f"{root}/{path}": content for path, content in variants.index_files(wheels).items()}
