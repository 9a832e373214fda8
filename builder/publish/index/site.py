"""A whole site of wheels, made kernel by kernel: indexes for installers and pages for people."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from builder import json_text
from builder.errors import BuilderError
from builder.hashes import sha256
from builder.make import wheel_record as record
from builder.matrix.variant import Variant
from builder.publish import families
from builder.publish.index import derived, grid, people, picks, simple, words
from builder.publish.index.derived import ByFamily
from builder.publish.index.people import Card
from builder.publish.index.picks import Environment
from builder.publish.index.simple import NO_UPLOADS, Listing, Uploads
from builder.publish.index.workers import Map
from builder.wheel import kernel_wheel
from builder.wheel.archive import WheelError
from builder.wheel.kernel_wheel import KernelWheel

FILES = derived.FILES
VARIANTS = "variants"
MANIFEST = "builder-index.json"
UPLOADED = "uploaded"
"""The key of the manifest for the times at which wheels came."""
_FORMAT = 1
UNFINISHED = b'{"builder-index": 1, "files": {}, "made": {}}\n'
"""The manifest until all the rest is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A file of the site: the wheels and what belongs to them never change, the rest does."""

    content: bytes | Path
    fixed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a site, which are the same for all its kernels."""

    environments: frozenset[Environment]
    """The environments that some wheel may fit."""
    base_url: str | None = None
    """The address of the site; None shows a word to replace."""
    with_variants: bool = False
    """Whether the wheels are there as wheel variants, too."""
    with_families: bool = False
    """Whether there are indexes for each family of GPUs, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A wheel of a site, without its content and its pages."""

    path: Path
    project: str
    kernel: str
    """The kernel's name, as its config spells it."""
    version: str
    variant: str
    sha256: str
    uploaded: str | None
    """The time at which it came into the index, if that is known."""
    not_for_release: str | None
    """Why it must not be published; None if it may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One kernel of a site."""

    name: str
    wheels: tuple[Listed, ...]
    environments: tuple[Environment, ...]
    """The environments that a wheel of it fits."""
    families: tuple[str, ...]
    """The folders of the indexes for families of GPUs that have it."""
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
    """Every choice that its page and its card offer: its axis and its value."""


def page_path(name: str) -> str:
    """Return the path of a kernel's page in the site."""
    return f"kernels/{name}/index.html"


def part(wheels: Sequence[KernelWheel], settings: Settings, uploaded: Uploads = NO_UPLOADS) -> Part:
    """Return the part of a site that one kernel is, by all of its wheels.

    Raises:
        WheelError: one is for a family of GPUs, or cannot be split into such.
    """
    name = wheels[0].wheel.name
    for each in wheels:
        families.require_whole(each)
    fixed = _fixed(wheels)
    listings = {each.wheel.path: Listing.of(each, uploaded.get(each.wheel.path.name)) for each in wheels}
    fitting = picks.fitting(wheels, settings.environments)
    indexes = simple.project(name, tuple(listings.values()), root="simple", files=FILES)
    for environment, own in fitting.items():
        listed = [listings[each.wheel.path] for each in own]
        indexes |= simple.project(name, listed, root=simple.root_for(environment), files=FILES)
    if settings.with_variants:
        _add_variants(name, wheels, uploaded, fixed, indexes)
    split = ByFamily()
    if settings.with_families:
        split = derived.add_families(name, fitting, listings, uploaded, (fixed, indexes))
    records = _records(wheels)
    offer = picks.offer(wheels)
    code = words.device_code(wheels)
    card = people.card(wheels, offer, code, uploaded)
    page = people.kernel(wheels, offer, code=code, split=split.wheels, uploaded=uploaded, base_url=settings.base_url)
    everything = {**fixed, **indexes, **records, page_path(name): page}
    return Part(
        name=name,
        wheels=tuple(
            Listed(
                path=each.wheel.path,
                project=each.wheel.name,
                kernel=each.kernel,
                version=str(each.wheel.version),
                variant=str(each.variant),
                sha256=each.sha256,
                uploaded=uploaded.get(each.wheel.path.name),
                not_for_release=each.metadata.not_for_release,
            )
            for each in wheels
        ),
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
    for each in wheels:
        name = each.wheel.path.name
        fixed[f"{FILES}/{name}"] = each.wheel.path
        fixed[f"{FILES}/{name}{simple.METADATA_SUFFIX}"] = each.core
        bill = grid.bill_member(each)
        if bill is not None:
            fixed[f"{FILES}/{name}{grid.SBOM_SUFFIX}"] = each.wheel.members[bill].read()
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
    for each in wheels:
        listing, content = derived.as_variant(each, uploaded.get(each.wheel.path.name))
        listings.append(listing)
        fixed[f"{files}/{listing.filename}"] = content
        fixed[f"{files}/{listing.filename}{simple.METADATA_SUFFIX}"] = listing.core
    root = f"{VARIANTS}/simple"
    indexes |= simple.project(name, listings, root=root, files=files)
    indexes |= {f"{root}/{path}": content for path, content in derived.variant_indexes(wheels).items()}


def settings(
    paths: Iterable[Path], *, base_url: str | None, with_variants: bool, with_families: bool = False
) -> Settings:
    """Return the settings of a site that has the wheels at `paths`, of which only the names are looked at."""
    found = frozenset(_variants(path.name for path in paths))
    return Settings(
        environments=picks.environments(found),
        base_url=base_url,
        with_variants=with_variants,
        with_families=with_families,
    )


def _variants(names: Iterable[str]) -> Iterator[Variant]:
    """Yield the variants in the names of wheels; a name without one is refused when its wheel is read."""
    alike = {tuple(name.partition("+")[::2])[1]: name for name in names}  # a label and tags say it all
    for name in alike.values():
        try:
            _, version, _, tags = parse_wheel_filename(name)
            yield kernel_wheel.variant_of(version.local, tags)
        except (InvalidWheelFilename, WheelError):  # noqa: PERF203  each name by itself
            continue


def parts(
    paths: Iterable[Path], common: Settings, *, uploaded: Uploads = NO_UPLOADS, each: Map = map
) -> tuple[Part, ...]:
    """Read wheels, and return the part of a site that each kernel is.

    Raises:
        WheelError: what is wrong with any of the wheels.
    """
    kernels: dict[str, list[Path]] = {}
    for path in sorted(paths, key=lambda path: path.name):
        kernels.setdefault(canonicalize_name(path.name.partition("-")[0]), []).append(path)
    work = [
        (own, {path.name: uploaded[path.name] for path in own if path.name in uploaded}) for own in kernels.values()
    ]
    found = list(each(partial(_part, common=common), work))
    problems = [problem for problem in found if isinstance(problem, str)]
    if problems:
        raise WheelError("\nerror: ".join(problems))
    return tuple(part for part in found if not isinstance(part, str))


def _part(own: tuple[Sequence[Path], Uploads], common: Settings) -> Part | str:
    """Return the part of one kernel, by its wheels and when they came; or what is wrong with them."""
    paths, uploaded = own
    try:
        return part(kernel_wheel.read_all(paths), common, uploaded)
    except WheelError as error:
        return str(error)


def build(
    wheels: Sequence[KernelWheel],
    *,
    base_url: str | None = None,
    with_variants: bool = False,
    with_families: bool = False,
    uploaded: Uploads = NO_UPLOADS,
) -> Mapping[str, Page]:
    """Return every file of the site of some wheels, by its path.

    Args:
        wheels: What the site has.
        base_url: Where it will be served; None shows a word to replace.
        with_variants: Whether the wheels are there as wheel variants, too.
        with_families: Whether there are indexes for each family of GPUs, too.
        uploaded: When they came into the index.

    Raises:
        BuilderError: two kernels have one name for an installer, or two wheels are of one version and variant.
    """
    common = Settings(
        environments=picks.environments(frozenset(each.variant for each in wheels)),
        base_url=base_url,
        with_variants=with_variants,
        with_families=with_families,
    )
    kernels: dict[str, list[KernelWheel]] = {}
    for each in wheels:
        kernels.setdefault(each.wheel.name, []).append(each)
    return assemble([part(own, common, uploaded) for own in kernels.values()], common)


def assemble(parts: Iterable[Part], settings: Settings) -> Mapping[str, Page]:
    """Return every file of the site that has these kernels; a link never leads to a file that comes later.

    Raises:
        BuilderError: two kernels have one name for an installer, or two wheels are of one version and variant.
    """
    ordered = sorted(parts, key=lambda each: each.name)
    wheels = [wheel for each in ordered for wheel in each.wheels]
    _check_names(wheels)
    _check_variants(wheels)
    environments = picks.environment_names(environment for each in ordered for environment in each.environments)
    shared = _roots(ordered, settings)
    shared |= people.front(
        [each.card for each in ordered],
        tuple(environments),
        values=chain.from_iterable(each.values for each in ordered),
        base_url=settings.base_url,
    )
    made = dict(chain.from_iterable(each.made.items() for each in ordered)) | digests(shared)
    pages = {page_path(each.name): each.page for each in ordered}
    changing: dict[str, bytes] = {}
    for each in ordered:
        changing |= {**each.indexes, **each.records}
    changing |= pages | shared | {MANIFEST: _manifest(wheels, made)}
    fixed = chain.from_iterable(each.fixed.items() for each in ordered)
    return {path: Page(content=content, fixed=True) for path, content in fixed} | {
        path: Page(content=content, fixed=False) for path, content in changing.items()
    }


def _roots(parts: Sequence[Part], settings: Settings) -> dict[str, bytes]:
    """Return the first page of each index for installers."""
    names = [each.name for each in parts]
    found = simple.root(names, root="simple")
    if settings.with_variants:
        found |= simple.root(names, root=f"{VARIANTS}/simple")
    by_environment: dict[Environment, list[str]] = {}
    for each in parts:
        for environment in each.environments:
            by_environment.setdefault(environment, []).append(each.name)
    by_root: dict[str, list[str]] = {}
    for each in parts:
        for place in each.families:
            by_root.setdefault(place, []).append(each.name)
    for place, fitting in by_root.items():
        found |= simple.root(fitting, root=place)
    for environment, fitting in by_environment.items():
        found |= simple.root(fitting, root=simple.root_for(environment))
    return found


def _check_names(wheels: Sequence[Listed]) -> None:
    spelled: dict[str, str] = {}
    for wheel in wheels:
        other = spelled.setdefault(wheel.project, wheel.kernel)
        if other != wheel.kernel:
            raise BuilderError(
                f"'{other}' and '{wheel.kernel}' are one name to an installer: '{wheel.project}'",
                help="rename one of the kernels, or give each an index of its own",
            )


def _check_variants(wheels: Sequence[Listed]) -> None:
    """Refuse wheels that differ only in the platform tag: an installer would choose by it, and a person could not."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for wheel in wheels:
        found.setdefault((wheel.project, wheel.version, wheel.variant), []).append(str(wheel.path))
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


def _manifest(wheels: Sequence[Listed], made: Mapping[str, str]) -> bytes:
    """Name every file of the site: the wheels, and what is made of them. Nothing else is published."""
    names = {wheel.path.name: wheel.sha256 for wheel in wheels}
    table: dict[str, object] = {
        "builder-index": _FORMAT,
        "files": dict(sorted(names.items())),
        "made": dict(sorted(made.items())),
    }
    uploaded = {wheel.path.name: wheel.uploaded for wheel in wheels if wheel.uploaded is not None}
    table |= {UPLOADED: dict(sorted(uploaded.items()))} if uploaded else {}
    return json_text.document(table, indent=1).encode()
