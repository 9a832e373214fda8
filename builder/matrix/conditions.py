"""Whether the `when` of a component holds, and why not."""

from collections.abc import Iterator
from dataclasses import dataclass

from builder.config.components import Component, CudaComponent, RocmComponent
from builder.config.values import Version
from builder.matrix import architectures


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a condition is asked about: a row of the matrix, or a cell."""

    toolkit: Version | None
    torch: Version
    system: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """An entry of a `when` that does not hold."""

    key: str
    message: str


def unmet(part: Component, place: Place, only: tuple[str, ...] = ()) -> Unmet | None:
    """Return the first entry of the component's `when` that does not hold; `only` are the GPUs of a quick build."""
    return next(_unmet(part, place, only), None)


def _unmet(part: Component, place: Place, only: tuple[str, ...]) -> Iterator[Unmet]:
    when = part.when
    if when is None:
        return
    if when.cuda is not None and (place.toolkit is None or place.toolkit not in when.cuda):
        yield Unmet(key="cuda", message=f"CUDA {place.toolkit} is not {when.cuda}")
    if when.torch is not None and place.torch not in when.torch:
        yield Unmet(key="torch", message=f"torch {place.torch} is not {when.torch}")
    if when.systems and place.system not in when.systems:
        yield Unmet(key="system", message=f"{place.system} is not {' or '.join(when.systems)}")
    if when.archs and not set(when.archs) & compiled(part, place.toolkit, only):
        yield Unmet(key="arch", message=f"it is not compiled for {' or '.join(when.archs)}")


def compiled(part: Component, toolkit: Version | None, only: tuple[str, ...] = ()) -> set[str]:
    """Return the architectures that a component is compiled for, without `+PTX`."""
    match part:
        case CudaComponent() if toolkit is not None:
            found = architectures.cuda(part.cuda_capabilities, toolkit, only).compiled
        case RocmComponent():
            found = architectures.rocm(part.rocm_archs, only).compiled
        case _:
            found = ()
    return {name.removesuffix("+PTX") for name in found}
