"""Quick builds: only for some GPUs, which `--archs` names."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from builder.config.values import Backend, CudaCapability, InvalidValueError, RocmArch
from builder.errors import BuilderError
from builder.matrix import architectures
from builder.wording import quoted

ALL = "all"
"""Stands for all GPUs that a kernel names: a full build."""
NATIVE = "native"
"""The word for the GPUs of this machine."""
_NAMES: Mapping[Backend, type[CudaCapability | RocmArch]] = {Backend.CUDA: CudaCapability, Backend.ROCM: RocmArch}
BACKENDS = tuple(_NAMES)
"""The backends whose compilers are told architectures."""
_LONGEST = 3
"""Digits of the number of an architecture, of which there are at most two today."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGpus:
    """The GPUs of one backend that a quick build is for, by their architectures."""

    backend: Backend
    archs: tuple[str, ...]

    def __str__(self) -> str:
        return ",".join(self.archs)


def parse(text: str) -> TargetGpus:
    """Read a list of architectures, such as `9.0a,8.0` or `gfx942`.

    Raises:
        BuilderError: a part of it is not an architecture, or they are of several backends.
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
    """Return GPUs in natural order, each once."""
    return TargetGpus(backend=backend, archs=tuple(sorted(set(archs), key=architectures.natural)))


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
    """Refuse architectures for a backend that has none of them.

    Raises:
        BuilderError: its wheels have no device code, or that of other GPUs.
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
