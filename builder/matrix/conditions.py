"""Whether the `when` of a component or an extension holds, and why not."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from builder.config import Backend, Config
from builder.config.components import Component, CudaComponent, RocmComponent
from builder.config.conditions import When
from builder.config.cuda_targets import code_of
from builder.config.extensions import ExtensionName
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
    return None if part.when is None else next(_unmet(part.when, (part,), place, only), None)


def may_hold(when: When | None, place: Place) -> bool:
    """Whether a condition holds for some choice of GPUs."""
    return when is None or next(_unmet(replace(when, arch=None), (), place, ()), None) is None


def unmet_of_extension(
    config: Config, name: ExtensionName, backend: Backend, place: Place, only: tuple[str, ...] = ()
) -> Unmet | None:
    """Return the first entry of the extension's `when` that does not hold; one for GPUs asks all its components."""
    when = config.extension[name].when
    parts = (part for part in config.components(backend).values() if part.extension == name)
    return None if when is None else next(_unmet(when, parts, place, only), None)


def _unmet(when: When, parts: Iterable[Component], place: Place, only: tuple[str, ...]) -> Iterator[Unmet]:
    if when.cuda is not None and (place.toolkit is None or place.toolkit not in when.cuda):
        yield Unmet(key="cuda", message=f"CUDA {place.toolkit} is not {when.cuda}")
    if when.torch is not None and place.torch not in when.torch:
        yield Unmet(key="torch", message=f"torch {place.torch} is not {when.torch}")
    if when.systems and place.system not in when.systems:
        yield Unmet(key="system", message=f"{place.system} is not {' or '.join(when.systems)}")
    if when.archs and not any(set(when.archs) & compiled(part, place.toolkit, only) for part in parts):
        yield Unmet(key="arch", message=f"it is not compiled for {' or '.join(when.archs)}")


def compiled_with_ptx(part: Component, toolkit: Version | None, only: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the architectures that a component is compiled for."""
    match part:
        case CudaComponent() if toolkit is not None:
            return architectures.cuda(part.cuda_capabilities, toolkit, only).compiled
        case RocmComponent():
            return architectures.rocm(part.rocm_archs, only).compiled
        case _:
            return ()


def compiled(part: Component, toolkit: Version | None, only: tuple[str, ...] = ()) -> set[str]:
    """Return the architectures whose machine code a component has: for the pair `8.0:8.6`, `8.6`."""
    return {code_of(name).real for name in compiled_with_ptx(part, toolkit, only)}
