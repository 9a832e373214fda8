"""The wheel that an installer takes for each PyTorch, compute platform and system.

An installer cannot tell which wheel fits the installed framework, so each environment has an index of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from builder.config import Framework, Version
from builder.matrix import rows
from builder.matrix.variant import Variant, fits
from builder.wheel.kernel_wheel import KernelWheel

Environment = tuple[Version, str]
"""A PyTorch, and the compute platform that it was built for."""


def environment_names(environments: Iterable[Environment]) -> tuple[str, ...]:
    """Return the names of the indexes for these, each once; the newest torch first.

    Wheels of one version of a kernel differ only in a label. An installer takes the highest label that its
    requirements allow, and `torch==2.13.*` matches a CPU build as well as one for CUDA 13.
    """
    newest_first = sorted(set(environments), key=lambda each: (-each[0].major, -each[0].minor, each[1]))
    return tuple(environment_name(environment) for environment in newest_first)


def fitting(
    wheels: Sequence[KernelWheel], among: frozenset[Environment] | None = None
) -> Mapping[Environment, tuple[KernelWheel, ...]]:
    """Return the wheels for each environment that some wheel fits, in the order of the wheels.

    `among` are those that are looked at; None is those that the matrix and these wheels name.
    """
    pairs = environments(frozenset(each.variant for each in wheels)) if among is None else among
    found: dict[Environment, list[KernelWheel]] = {}
    for kernel_wheel in wheels:
        for pair in _fitted(kernel_wheel.variant, pairs):
            found.setdefault(pair, []).append(kernel_wheel)
    return {pair: tuple(each) for pair, each in found.items()}


@lru_cache(maxsize=1 << 12)
def _fitted(variant: Variant, among: frozenset[Environment]) -> tuple[Environment, ...]:
    """Return those of some environments that a wheel of a variant fits; kernels mostly have the same variants."""
    return tuple(pair for pair in among if fits(variant, torch=pair[0], compute=pair[1]))


def environment_name(environment: Environment) -> str:
    """Return the name of the index for one torch and one compute platform."""
    torch, compute = environment
    return f"torch{torch.major}{torch.minor}-{compute}"


@lru_cache(maxsize=1 << 8)
def environments(variants: frozenset[Variant]) -> frozenset[Environment]:
    """Return the environments of the matrix, and those that only one of these variants names."""
    pairs = {(row.torch, row.compute) for row in rows()}
    for variant in variants:
        if variant.framework is Framework.TORCH and variant.version is not None and not variant.stable:
            pairs.add((variant.version, variant.compute))
        elif not variant.backend.facts.components:
            pairs |= {(row.torch, variant.compute) for row in rows()}
    return frozenset(pairs)


ANY_SYSTEM = "any-system"
"""The system of a compute platform for which the matrix knows none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A compute platform on a system."""

    compute: str
    system: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The wheel that an installer takes in one place for one PyTorch or several."""

    place: Place
    torches: tuple[Version, ...]
    """The oldest first; one stable ABI serves several."""
    wheels: tuple[KernelWheel, ...]
    """Mostly one; one for each Python, where they need it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """All there is to take of some wheels of a kernel, in a fixed order."""

    torches: tuple[Version, ...]
    """The oldest first."""
    places: tuple[Place, ...]
    picks: tuple[Pick, ...]

    @property
    def computes(self) -> tuple[str, ...]:
        """The compute platforms."""
        return tuple(sorted({place.compute for place in self.places}))

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems."""
        return tuple(
            sorted({place.system for place in self.places}, key=lambda system: system.split("-")[::-1], reverse=True)
        )


def offer(wheels: Iterable[KernelWheel]) -> Offer:
    """Return what an installer takes of some wheels, by what they say of themselves."""
    taken: dict[Place, dict[Version, list[KernelWheel]]] = {}
    for (torch, compute), found in fitting(tuple(wheels)).items():
        for kernel_wheel in found:
            system = kernel_wheel.variant.system
            for each in systems_of(compute) if system is None else (system,):
                _take(taken.setdefault(Place(compute=compute, system=each), {}), torch, kernel_wheel)
    places = tuple(sorted(taken, key=lambda place: (place.compute, place.system)))
    torches = {torch for by_torch in taken.values() for torch in by_torch}
    return Offer(
        torches=tuple(sorted(torches)),
        places=places,
        picks=tuple(pick for place in places for pick in _runs(place, taken[place])),
    )


def _take(by_torch: dict[Version, list[KernelWheel]], torch: Version, kernel_wheel: KernelWheel) -> None:
    """Keep a wheel if no better one is there: an installer takes the highest version, its label included."""
    best = by_torch.setdefault(torch, [])
    if best and best[0].wheel.version < kernel_wheel.wheel.version:
        best.clear()
    if not best or best[0].wheel.version == kernel_wheel.wheel.version:
        best.append(kernel_wheel)


def _runs(place: Place, by_torch: dict[Version, list[KernelWheel]]) -> Iterable[Pick]:
    found: dict[tuple[str, ...], list[Version]] = {}
    for torch in sorted(by_torch):
        found.setdefault(tuple(each.wheel.path.name for each in by_torch[torch]), []).append(torch)
    for torches in found.values():
        ordered: Sequence[KernelWheel] = sorted(by_torch[torches[0]], key=lambda each: each.wheel.path.name)
        yield Pick(place=place, torches=tuple(torches), wheels=tuple(ordered))


@cache
def systems_of(compute: str) -> tuple[str, ...]:
    """Return the systems that the matrix has for a compute platform."""
    return tuple(sorted({row.system for row in rows() if row.compute == compute})) or (ANY_SYSTEM,)


@cache
def in_matrix(torch: Version, place: Place) -> bool:
    """Whether the matrix has a PyTorch for a place."""
    return any((row.torch, row.compute, row.system) == (torch, place.compute, place.system) for row in rows())
