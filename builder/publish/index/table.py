"""The wheels of a kernel as a table: the wheel that an installer chooses for each PyTorch, compute platform and system.

An installer cannot tell which wheel fits the installed framework, so there is an index for each environment.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from builder import pins
from builder.audit import gpus
from builder.audit.gpus import GpuCode
from builder.config import Backend, Framework, Version
from builder.config.gpus import Gpu, known
from builder.errors import BuilderError
from builder.matrix import rows
from builder.matrix.variant import Variant, backend_of, fits
from builder.publish.families import Family
from builder.publish.index import words
from builder.wheel.kernel_wheel import KernelWheel

Environment = tuple[Version, str]
"""A PyTorch, with the compute platform that it was built for."""
Place = tuple[str, str]
"""A compute platform, and a system."""
Uploads = Mapping[str, str]
"""Known upload times by wheel name, such as `2026-08-01T00:00:00Z`."""
Split = Mapping[Path, Mapping[Family, tuple[str, int]]]
"""The wheels for one family of GPUs made from a wheel: the folder of the newest index, and the size."""
_DATE = 10
"""The number of characters of a time that form the day."""


def environment_names(environments: Iterable[Environment]) -> tuple[str, ...]:
    """Return the names of the environments' indexes, each once, the newest torch first.

    Wheels of one version of a kernel differ only in a label. An installer takes the highest label that its requirements
    allow, and `torch==2.13.*` matches a CPU build as well as one for CUDA 13.
    """
    newest_first = sorted(set(environments), key=lambda each: (-each[0].major, -each[0].minor, each[1]))
    return tuple(map(environment_name, newest_first))


def environment_name(environment: Environment) -> str:
    """Return the name of the index for one torch and one compute platform."""
    torch, compute = environment
    return f"{words.value(torch)}-{compute}"


@lru_cache(maxsize=1 << 8)
def environments(variants: frozenset[Variant]) -> frozenset[Environment]:
    """Return the environments of the matrix, and others that only one of these variants names."""
    pairs = {(row.torch, row.compute) for row in rows()}
    for variant in variants:
        if variant.framework is Framework.TORCH and variant.version is not None and not variant.stable:
            pairs.add((variant.version, variant.compute))
        elif not variant.backend.facts.components:
            pairs |= {(row.torch, variant.compute) for row in rows()}
    return frozenset(pairs)


def fitting(
    wheels: Iterable[KernelWheel], among: frozenset[Environment] | None = None
) -> Mapping[Environment, tuple[KernelWheel, ...]]:
    """Return the fitting wheels for each environment that has any, the oldest torch first.

    `among` restricts the environments; None means those of the matrix and of these wheels.
    """
    ordered = tuple(wheels)
    pairs = environments(frozenset(each.variant for each in ordered)) if among is None else among
    found: dict[Environment, list[KernelWheel]] = {}
    for kernel_wheel in ordered:
        for pair in _fitted(kernel_wheel.variant, pairs):
            found.setdefault(pair, []).append(kernel_wheel)
    return {pair: tuple(found[pair]) for pair in sorted(found)}


@lru_cache(maxsize=1 << 12)
def _fitted(variant: Variant, among: frozenset[Environment]) -> tuple[Environment, ...]:
    """Return the environments that a wheel of a variant fits; cached, since kernels mostly have the same variants."""
    return tuple(pair for pair in among if fits(variant, torch=pair[0], compute=pair[1]))


@cache
def systems_of(compute: str) -> tuple[str, ...]:
    """Return the matrix's systems for a compute platform."""
    return tuple(sorted({row.system for row in rows() if row.compute == compute})) or (words.ANY_SYSTEM,)


@cache
def in_matrix(torch: Version, place: Place) -> bool:
    """Whether the matrix has a PyTorch for a place."""
    return any((row.torch, row.compute, row.system) == (torch, *place) for row in rows())


@cache
def torch_index(torch: Version, place: Place) -> str | None:
    """Return the address of the index that has a PyTorch for a place; None is the default one.

    It is that of the pins; one that is not pinned is where others for the same compute platform are, and for CUDA
    beside those of another toolkit.
    """
    compute, system = place
    torches = [part for part in _pins().parts if part.name == "torch"]
    own = [part for part in torches if compute in part.compute and system in part.wheels]
    pinned = [part for part in own if part.version == str(torch)]
    if pinned:
        return pinned[0].index
    known = [part.index for part in own if part.index is not None]
    if known or not own or backend_of(compute) is not Backend.CUDA:
        return known[-1] if known else None
    others = (part.index for part in torches if part.index is not None)
    return next(
        (f"{index.rpartition('/')[0]}/{compute}" for index in others if index.rpartition("/")[2][:2] == "cu"), None
    )


@cache
def _pins() -> pins.Pins:
    return pins.load()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """The GPUs that run a wheel, according to its device code."""

    codes: tuple[GpuCode, ...] = ()
    """The code that each GPU of its backend runs; empty if the wheel does not tell."""
    silent: tuple[Gpu, ...] = ()
    """The GPUs of its backend, if it is unknown which of them run the wheel."""
    why: str = ""
    """Why it is unknown."""

    @classmethod
    def of(cls, kernel_wheel: KernelWheel) -> "DeviceCode":
        """Read the libraries of a wheel."""
        backend = kernel_wheel.variant.backend
        among = tuple(gpu for gpu in known() if gpu.backend is backend)
        if not among:
            return cls()
        try:
            codes = gpus.of_libraries(kernel_wheel.wheel, backend)
        except BuilderError:
            return cls(silent=among, why="not known, as its device code cannot be read")
        if not codes:
            return cls(silent=among, why="not known, as it has no device code of its own")
        return cls(codes=codes)

    @property
    def running(self) -> tuple[Gpu, ...]:
        """The GPUs that run the wheel, and GPUs for which that is unknown."""
        return (*(code.gpu for code in self.codes if code.runs), *self.silent)

    @property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """The GPUs grouped by how they run it: first those with code of their own, last those without code."""
        ways: dict[str, list[Gpu]] = {}
        for code in sorted(self.codes, key=lambda code: (not code.runs, not code.own, not code.older)):
            ways.setdefault(code.way, []).append(code.gpu)
        return tuple(("; ".join(map(words.gpu_title, each)), way) for way, each in ways.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The wheel that an installer chooses in one place, for one or several PyTorch versions."""

    place: Place
    torches: tuple[Version, ...]
    """The oldest first; a stable ABI serves several."""
    wheels: tuple[KernelWheel, ...]
    """Mostly one; or one for each Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Wheels of one kernel, of one or all versions, with the data for its page and its card."""

    wheels: tuple[KernelWheel, ...]
    """The wheels, sorted by file name."""
    picks: tuple[Pick, ...]
    """All choices of an installer, by place."""
    code: Mapping[Path, DeviceCode]
    """The device code of each wheel, by its path."""
    split: Split
    uploaded: Uploads

    @classmethod
    def of(
        cls,
        wheels: Iterable[KernelWheel],
        *,
        code: Mapping[Path, DeviceCode] | None = None,
        split: Split | None = None,
        uploaded: Uploads | None = None,
    ) -> "Table":
        """Make the table of some wheels; read their device code unless it is given."""
        ordered = tuple(sorted(wheels, key=lambda each: each.wheel.path.name))
        return cls(
            wheels=ordered,
            picks=tuple(_picks(ordered)),
            code={each.wheel.path: DeviceCode.of(each) for each in ordered} if code is None else code,
            split=split or {},
            uploaded=uploaded or {},
        )

    @property
    def newest(self) -> KernelWheel:
        """The wheel of the newest version with the last name."""
        return max(self.wheels, key=lambda each: (each.wheel.version, each.wheel.path.name))

    @property
    def name(self) -> str:
        """The kernel, as installers call it."""
        return self.newest.wheel.name

    @property
    def version(self) -> str:
        """The newest version."""
        return self.newest.wheel.version.public

    @property
    def torches(self) -> tuple[Version, ...]:
        """The versions of PyTorch, the oldest first."""
        return tuple(sorted({torch for pick in self.picks for torch in pick.torches}))

    @property
    def places(self) -> tuple[Place, ...]:
        """The compute platforms with their systems."""
        return tuple(dict.fromkeys(pick.place for pick in self.picks))

    @property
    def computes(self) -> tuple[str, ...]:
        """The compute platforms."""
        return tuple(dict.fromkeys(compute for compute, _ in self.places))

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems."""
        found = {system for _, system in self.places}
        return tuple(sorted(found, key=lambda system: system.split("-")[::-1], reverse=True))

    @property
    def released(self) -> str:
        """The upload day of the newest version; empty if that of any of its wheels is unknown.

        The first wheel counts: a later wheel for a new PyTorch does not make a new version.
        """
        version = self.version
        own = [each.wheel.path.name for each in self.wheels if each.wheel.version.public == version]
        known = [self.uploaded[name] for name in own if name in self.uploaded]
        return min(known)[:_DATE] if len(known) == len(own) else ""

    def releases(self) -> tuple["Table", ...]:
        """Return the table of each version, the newest first."""
        versions: dict[str, list[KernelWheel]] = {}
        for each in sorted(self.wheels, key=lambda each: each.wheel.version, reverse=True):
            versions.setdefault(each.wheel.version.public, []).append(each)
        if len(versions) == 1:
            return (self,)
        return tuple(
            Table.of(found, code=self.code, split=self.split, uploaded=self.uploaded) for found in versions.values()
        )


def _picks(wheels: Iterable[KernelWheel]) -> Iterator[Pick]:
    """Yield an installer's choices: the highest version, including the label."""
    named = {each.wheel.path.name: each for each in wheels}
    taken: dict[Place, dict[Version, list[KernelWheel]]] = {}
    for (torch, compute), found in fitting(named.values()).items():
        for each in found:
            system = each.variant.system
            for one in systems_of(compute) if system is None else (system,):
                taken.setdefault((compute, one), {}).setdefault(torch, []).append(each)
    for place in sorted(taken):
        runs: dict[tuple[str, ...], list[Version]] = {}
        for torch, fit in taken[place].items():
            best = max(each.wheel.version for each in fit)
            names = sorted(each.wheel.path.name for each in fit if each.wheel.version == best)
            runs.setdefault(tuple(names), []).append(torch)
        for same, torches in runs.items():
            yield Pick(place=place, torches=tuple(torches), wheels=tuple(named[name] for name in same))
