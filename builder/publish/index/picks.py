"""What an installer takes for each PyTorch, compute platform and system; and why there is nothing to take."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from builder.config import Version
from builder.matrix import rows
from builder.publish.index.choice import fitting
from builder.wheel.kernel_wheel import KernelWheel

ANY_SYSTEM = "any-system"
"""Where the matrix knows no system for a compute platform."""


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
class Gap:
    """Where there is nothing to take."""

    places: tuple[Place, ...]
    torches: tuple[Version, ...]
    known: bool
    """Whether the matrix has a PyTorch there, so that a wheel could be built."""


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

    def gaps(self) -> tuple[Gap, ...]:
        """Return where nothing can be taken, each PyTorch and place once."""
        taken = {(torch, pick.place) for pick in self.picks for torch in pick.torches}
        places = [Place(compute=compute, system=system) for compute in self.computes for system in self.systems]
        found: dict[tuple[str, tuple[Version, ...], bool], list[Place]] = {}
        for place in places:
            for known in (True, False):
                lacking = tuple(
                    torch for torch in self.torches if (torch, place) not in taken and in_matrix(torch, place) is known
                )
                if lacking:
                    found.setdefault((place.compute, lacking, known), []).append(place)
        return tuple(Gap(places=tuple(each), torches=key[1], known=key[2]) for key, each in found.items())


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
