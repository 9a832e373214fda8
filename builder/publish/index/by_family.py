"""Indexes for one PyTorch and one family of GPUs, whose wheels have the device code of that family alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from builder.config import Backend
from builder.errors import BuilderError
from builder.hashes import sha256
from builder.matrix.variant import backend_of
from builder.publish import families
from builder.publish.families import Family
from builder.publish.index import simple
from builder.publish.index.choice import Environment
from builder.publish.index.simple import Listing
from builder.publish.index.uploads import Uploads
from builder.wheel.archive import WheelError
from builder.wheel.kernel_wheel import KernelWheel

FILES = "files"
_FOLDER = f"{FILES}/families"


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyWheel:
    """A wheel for one family of GPUs, as the page of its kernel names it."""

    family: Family
    size: int
    root: str
    """Where the index for the newest torch is that has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByFamily:
    """What a site has for families of GPUs of one kernel."""

    roots: tuple[str, ...] = ()
    """Where in the site the indexes are."""
    wheels: Mapping[Path, tuple[FamilyWheel, ...]] = field(default_factory=dict)
    """What each wheel was split into, by the path of the whole one."""


def root_for(environment: Environment, family: Family) -> str:
    """Return where in the site the index for an environment with GPUs of a family is."""
    return simple.root_for(environment, str(family))


def add(
    name: str,
    fitting: Mapping[Environment, Sequence[KernelWheel]],
    whole: Mapping[Path, Listing],
    uploaded: Uploads,
    into: tuple[dict[str, bytes | Path], dict[str, bytes]],
) -> ByFamily:
    """Add the wheels for families and their indexes to the files of a site, and return what there is of them.

    A wheel without device code is in the index of every family as it is; so is one with code for a single family.

    Args:
        name: The project.
        fitting: Its wheels for each environment.
        whole: How each of them is listed.
        uploaded: When they came into the index.
        into: Files that never change, and pages of indexes.

    Raises:
        WheelError: the device code of a wheel cannot be read.
    """
    fixed, indexes = into
    made: dict[Path, Mapping[Family, Listing]] = {}
    roots = []
    split: dict[Path, dict[Family, FamilyWheel]] = {}
    oldest_first = sorted(fitting.items(), key=lambda each: (each[0][0].major, each[0][0].minor, each[0][1]))
    for environment, wheels in oldest_first:
        if backend_of(environment[1]) is not Backend.CUDA:
            continue
        listed: dict[Family, list[Listing]] = {}
        for wheel in wheels:
            path = wheel.wheel.path
            if path not in made:
                made[path] = _of_wheel(wheel, whole[path], uploaded, fixed)
            for family, listing in made[path].items():
                listed.setdefault(family, []).append(listing)
                if listing is not whole[path]:
                    place = root_for(environment, family)
                    split.setdefault(path, {})[family] = FamilyWheel(family=family, size=listing.size, root=place)
        for family, listings in sorted(listed.items()):
            roots.append(root_for(environment, family))
            indexes |= simple.project(name, listings, root=roots[-1], files=FILES)
    wheels_of = {path: tuple(found[family] for family in sorted(found)) for path, found in split.items()}
    return ByFamily(roots=tuple(roots), wheels=wheels_of)


def _of_wheel(
    wheel: KernelWheel, whole: Listing, uploaded: Uploads, fixed: dict[str, bytes | Path]
) -> Mapping[Family, Listing]:
    """Return how a wheel is listed for each family that it serves, and add what is made for that."""
    found: dict[Family, Listing] = {}
    try:
        served = families.of(wheel)
        if len(served) <= 1:
            return dict.fromkeys(served or families.all_known(), whole)
        for family, made in families.split(wheel):
            found[family] = Listing(
                project=whole.project,
                version=whole.version,
                filename=made.name,
                sha256=sha256(made.content),
                size=len(made.content),
                core=whole.core,
                uploaded=uploaded.get(wheel.wheel.path.name),
                folder="families/",
            )
            fixed[f"{_FOLDER}/{made.name}"] = made.content
            fixed[f"{_FOLDER}/{made.name}{simple.METADATA_SUFFIX}"] = whole.core
    except BuilderError as error:
        raise WheelError(f"'{wheel.wheel.path}' cannot be split: {error.message}", help=error.help) from error
    return found
