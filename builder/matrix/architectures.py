"""Choose the GPU architectures to compile: by the kernel's request, the toolkit, and the GPUs of a quick build."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from builder import toml
from builder.config.gpus import CudaCode, code_of, plain
from builder.config.source_tables import Component, CudaComponent, RocmComponent
from builder.config.values import Backend, CudaCapability, InvalidValueError, RocmArch, Version
from builder.errors import BuilderError
from builder.resources import DATA
from builder.wording import quoted

_PTX = "+PTX"
ALL = "all"
"""Stands for all GPUs that a kernel names: a full build."""
NATIVE = "native"
"""The word for the GPUs of this machine."""
_NAMES: Mapping[Backend, type[CudaCapability | RocmArch]] = {Backend.CUDA: CudaCapability, Backend.ROCM: RocmArch}
BACKENDS = tuple(_NAMES)
"""The backends whose compilers are given architectures."""
_LONGEST = 3
"""The most digits of an architecture's number; today's have at most two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architectures:
    """The compiled architectures, and the requested ones that are not compiled; both in natural order."""

    compiled: tuple[str, ...]
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A range of CUDA toolkits that support the same capabilities."""

    since: Version
    capabilities: tuple[str, ...]
    """The default capabilities."""
    targets: tuple[str, ...]
    """Every GPU for which they compile, such as `10.3a`."""
    renamed: Mapping[str, str]
    """The name of a GPU in other generations -> its name in this one."""


@lru_cache
def facts() -> dict[str, Any]:
    """Return the tables of `architectures.toml`."""
    return toml.loads((DATA / "architectures.toml").read_text(encoding="utf-8"))


@lru_cache
def generations() -> tuple[Generation, ...]:
    """Return the generations of CUDA toolkits, newest first."""
    return tuple(
        Generation(
            since=Version(entry["since"]),
            capabilities=tuple(entry["capabilities"]),
            targets=tuple(entry["targets"]),
            renamed=entry.get("renamed", {}),
        )
        for entry in facts()["cuda"]["toolkit"]
    )


def cuda(requested: tuple[str, ...] | None, toolkit: Version, only: tuple[str, ...] = ()) -> Architectures:
    """Return the requested capabilities that a CUDA toolkit compiles; None requests all of them.

    `only` are the GPUs of a quick build, which restrict the result to code that these GPUs run.
    """
    generation = next((entry for entry in generations() if entry.since <= toolkit), None)
    if generation is None:
        return Architectures(compiled=(), lost=_sorted(requested or ()))
    full = Architectures(compiled=generation.capabilities) if requested is None else _full(requested, generation)
    if not only:
        return full
    # A component without its own list is compiled for exactly the named GPUs: for 9.0a.
    code = {gpu: _code(gpu, full.compiled, generation, as_named=requested is None) for gpu in only}
    return _quick(code)


def _full(requested: tuple[str, ...], generation: Generation) -> Architectures:
    """Return the capabilities that a generation compiles for a request; a renamed GPU is requested by its new name."""
    names = {}
    for name in requested:
        halves = code_of(name)
        virtual, real = (generation.renamed.get(plain(half), plain(half)) + half[len(plain(half)) :] for half in halves)
        names[name] = CudaCode(virtual=virtual, real=real).name + _PTX * name.endswith(_PTX)
    found = intersect(tuple(names.values()), generation.capabilities, generation.targets)
    lost = (name for name, here in names.items() if here in found.lost)
    return Architectures(compiled=found.compiled, lost=_sorted(lost))


def toolkits_with(capability: str, among: Iterable[Version]) -> tuple[Version, ...]:
    """Return the CUDA toolkits that compile for a capability, or for its GPU, oldest first."""
    return tuple(toolkit for toolkit in sorted(set(among)) if cuda((capability,), toolkit).compiled)


def rocm(requested: tuple[str, ...] | None, only: tuple[str, ...] = ()) -> Architectures:
    """Return the requested ROCm architectures that are compiled; None requests all of them.

    `only` are the GPUs of a quick build, which restrict the result to themselves.
    """
    supported, targets = facts()["rocm"]["archs"], facts()["rocm"]["targets"]
    if only:
        full = rocm(requested).compiled
        return _quick({gpu: gpu if gpu in full else None for gpu in only})
    if requested is None:
        return Architectures(compiled=_sorted(supported))
    return Architectures(
        compiled=_sorted(arch for arch in requested if arch in targets),
        lost=_sorted(arch for arch in requested if arch not in targets),
    )


def compiled_with_ptx(part: Component, toolkit: Version | None, only: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the architectures that a component is compiled for, with `+PTX`."""
    match part:
        case CudaComponent() if toolkit is not None:
            return cuda(part.cuda_capabilities, toolkit, only).compiled
        case RocmComponent():
            return rocm(part.rocm_archs, only).compiled
        case _:
            return ()


def compiled(part: Component, toolkit: Version | None, only: tuple[str, ...] = ()) -> set[str]:
    """Return the architectures of a component's machine code: `8.6` for the pair `8.0:8.6`."""
    return {code_of(name).real for name in compiled_with_ptx(part, toolkit, only)}


def _quick(code: Mapping[str, str | None]) -> Architectures:
    """Return the architectures of a quick build, from the code that each GPU runs; None means that it has no code."""
    compiled = {name for name in code.values() if name is not None}
    compiled -= {name.removesuffix(_PTX) for name in compiled if name.endswith(_PTX)}
    return Architectures(compiled=_sorted(compiled), lost=_sorted(gpu for gpu, name in code.items() if name is None))


def _code(gpu: str, full: tuple[str, ...], generation: Generation, *, as_named: bool) -> str | None:
    """Return the code of a full build that a GPU runs; None if there is none, or the toolkit does not know the GPU."""
    own = code_of(gpu).gpu
    if as_named and own in (code_of(name).gpu for name in generation.capabilities):
        return gpu
    number = _number(own)
    same_major = (_number(plain(name)) for name in generation.targets if _number(plain(name))[0] == number[0])
    if not any(known <= number for known in same_major):
        return None
    return max((name for name in full if runs(name, own)), key=_order, default=None)


@lru_cache(maxsize=1024)
def runs(name: str, gpu: str) -> bool:
    """Whether code for a capability or a pair, such as `9.0a+PTX` or `8.0:8.6`, runs on a GPU, such as `9.0`.

    Code with the suffix `a` runs only on its own GPU; other machine code runs on later GPUs of its major version, which
    is the family that code with `f` is for; PTX runs on every later GPU. Thor is 11.0 under both of its numbers, and
    not in the family of 10.0. Machine code for a Jetson GPU runs only there, and a Jetson GPU runs no other.
    """
    code = code_of(name)
    own, number = _number(_current(code.gpu)), _number(_current(gpu))
    suffix, ptx = code.real[-1], name.endswith(_PTX)
    if suffix == "a" or (not ptx and {code.gpu, gpu} & set(facts()["cuda"]["alone"])):
        return own == number
    return own <= number and (own[0] == number[0] or (suffix != "f" and ptx))


def _current(capability: str) -> str:
    """Return the newest toolkits' number for a GPU."""
    return generations()[0].renamed.get(capability, capability)


def intersect(requested: tuple[str, ...], supported: tuple[str, ...], targets: tuple[str, ...]) -> Architectures:
    """Return the architectures to compile, so that every supported GPU has code if the requested code would run on it.

    Code for a capability runs on later GPUs of its major version, and with PTX on every later GPU. A capability with a
    suffix runs only on its own GPU, and a pair says how its code is made, so these are kept unchanged. They replace the
    plain capability, which nvcc refuses next to code for its family. A requested GPU is supported if it is among the
    toolkit's `targets`. An unsupported capability is not compiled for other GPUs either: CUDA 13 refuses 7.0, although
    7.5 would run it.
    """
    ptx = {text.removesuffix(_PTX) for text in requested if text.endswith(_PTX)}
    asked = dict.fromkeys(text.removesuffix(_PTX) for text in requested)
    gpus = dict.fromkeys(text.removesuffix(_PTX) for text in supported)
    known = [name for name in asked if makes(name, targets)]
    gpus |= dict.fromkeys(code_of(name).gpu for name in known)
    special = {name: code_of(name) for name in known if name != code_of(name).gpu}
    served = {code.gpu for code in special.values()}
    families = {code.gpu for code in special.values() if code.real.endswith("f")}
    others = [name for name in known if name not in special and name not in families]
    best = (_best(gpu, others, ptx) for gpu in gpus if gpu not in served)
    compiled = {*special, *(name for name in best if name is not None)}
    lost = [text for text in requested if text.removesuffix(_PTX) not in compiled]
    return Architectures(compiled=_sorted(name + _PTX * (name in ptx) for name in compiled), lost=_sorted(lost))


def makes(name: str, targets: tuple[str, ...]) -> bool:
    """Whether a toolkit with these targets can compile a capability or a pair."""
    code = code_of(name)
    if not {*code} <= {*targets} or code.obstacle is not None:
        return False
    family = "f" in {code.virtual[-1], code.real[-1]}
    return not family or runs(f"{plain(code.virtual)}f", code.gpu)  # 10.1 is not in the family of 10.0


def _best(gpu: str, requested: list[str], ptx: set[str]) -> str | None:
    """Return the newest requested capability whose code runs on `gpu`."""
    runs = [
        name
        for name in requested
        if _number(name) <= _number(gpu) and (_number(name)[0] == _number(gpu)[0] or name in ptx)
    ]
    return max(runs, key=_number, default=None)


def _number(capability: str) -> tuple[int, int]:
    version = Version(capability)
    return version.major, version.minor


def _sorted(names: Any) -> tuple[str, ...]:
    """Sort names in natural order, without duplicates: gfx90a, gfx908, gfx1030; a pair is sorted by its GPU."""
    return tuple(sorted(set(names), key=_order))


def _order(name: str) -> tuple[Any, ...]:
    return natural(code_of(name).real), natural(name)


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that compares the numbers in a text as numbers."""
    return tuple((int(number), letters) for number, letters in re.findall(r"([0-9]+)([^0-9]*)", text))


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGpus:
    """The GPUs of a quick build, of one backend, by architecture."""

    backend: Backend
    archs: tuple[str, ...]

    def __str__(self) -> str:
        return ",".join(self.archs)


def parse(text: str) -> TargetGpus:
    """Parse a list of architectures, such as `9.0a,8.0` or `gfx942`.

    Raises:
        BuilderError: an entry is not an architecture, or they belong to several backends.
    """
    found: dict[Backend, list[str]] = {}
    for part in text.split(","):
        name = part.strip()
        found.setdefault(_backend_of(name), []).append(name)
    if len(found) > 1:
        several = " and ".join(f"{', '.join(names)} of {backend.facts.title}" for backend, names in found.items())
        raise BuilderError(f"{several} are not for one build", help="build for each with a command of its own")
    ((backend, names),) = found.items()
    return of(backend, names)


def of(backend: Backend, archs: Iterable[str]) -> TargetGpus:
    """Return GPUs in natural order, without duplicates."""
    return TargetGpus(backend=backend, archs=tuple(sorted(set(archs), key=natural)))


def _backend_of(name: str) -> Backend:
    for backend, kind in _NAMES.items():
        try:
            kind(name)
        except InvalidValueError:
            continue
        if max(map(len, re.findall("[0-9]+", name))) <= _LONGEST or backend is Backend.ROCM:
            return backend
    if name == NATIVE:
        raise BuilderError(f"'{NATIVE}' stands alone", help="name architectures, or the GPUs of this machine, not both")
    guess = CudaCapability.remedy(name) or RocmArch.remedy(name)
    raise BuilderError(
        f"{quoted(name)} is not an architecture of a GPU",
        help=guess or "write those of CUDA as in '9.0a', those of ROCm as in 'gfx942', with commas between them",
    )


def require(archs: tuple[str, ...], backend: Backend, *, noarch: bool) -> None:
    """Refuse architectures that a backend does not have.

    Raises:
        BuilderError: its wheels have no device code, or code for other GPUs.
    """
    if not archs:
        return
    if noarch or backend not in BACKENDS:
        what = "is pure Python" if noarch else "is told no architectures"
        raise BuilderError(
            f"{', '.join(archs)}: what is built for {backend.facts.title} {what}",
            help="leave the architectures out, or name a cell of CUDA or ROCm",
        )
    named = parse(",".join(archs)).backend
    if named is not backend:
        raise BuilderError(
            f"{', '.join(archs)} is of {named.facts.title}, and the cell of {backend.facts.title}",
            help=f"name architectures of {backend.facts.title}, or a cell of {named.facts.title}",
        )
