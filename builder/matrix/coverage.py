"""Which GPU architectures a cell gets of those that its components ask for, known before anything is built."""

from collections.abc import Iterator
from dataclasses import dataclass

from builder.config import Backend, Config
from builder.config.v5 import CudaComponent, RocmComponent
from builder.errors import BuilderError
from builder.matrix import Cell, absent_components, architectures
from builder.matrix.architectures import Architectures
from builder.matrix.rules import KeyPath, minor


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What the toolkit of a cell compiles of one component that names architectures."""

    component: str
    rule: str
    """The key that names them: `cuda-capabilities` or `rocm-archs`."""
    requested: tuple[str, ...]
    toolkit: str
    """Its name and version, such as `CUDA 12.6`."""
    selection: Architectures

    @property
    def key(self) -> KeyPath:
        """Where `build.toml` has that key."""
        return "kernel", self.component, self.rule

    @property
    def message(self) -> str | None:
        """What is lost, in words; None where nothing is."""
        if not self.selection.compiled:
            asked = ", ".join(self.requested) or "nothing"
            return f"component '{self.component}' asks for {asked}, and {self.toolkit} compiles none of it"
        if self.selection.lost:
            lost = ", ".join(self.selection.lost)
            return f"component '{self.component}' is built without {lost}: not in {self.toolkit}"
        return None


def of(config: Config, cell: Cell) -> Iterator[Coverage]:
    """Yield the coverage of each component of a cell that names architectures; a noarch cell compiles none."""
    if cell.noarch or cell.toolkit is None:
        return
    absent = absent_components(config, cell)
    for name, part in config.components(cell.backend).items():
        if isinstance(part, CudaComponent) and part.cuda_capabilities is not None and name not in absent:
            selection = architectures.cuda(part.cuda_capabilities, minor(cell.toolkit))
            yield _coverage(name, "cuda-capabilities", part.cuda_capabilities, f"CUDA {cell.toolkit}", selection)
        elif isinstance(part, RocmComponent) and part.rocm_archs is not None:
            selection = architectures.rocm(part.rocm_archs)
            yield _coverage(name, "rocm-archs", part.rocm_archs, f"ROCm {cell.toolkit}", selection)


def require(config: Config, cell: Cell) -> None:
    """Refuse a cell with a component that would have no device code, before anything is fetched for it.

    Raises:
        BuilderError: with the architectures that its toolkit has.
    """
    empty = [covered for covered in of(config, cell) if not covered.selection.compiled]
    if not empty:
        return
    if cell.backend is Backend.CUDA and cell.toolkit is not None:
        has = architectures.cuda(None, minor(cell.toolkit)).compiled
        remedy = "add one, or set 'cuda-minver' above this toolkit to leave the component out of this cell"
    else:
        has, remedy = architectures.rocm(None).compiled, "add one"
    raise BuilderError(
        f"{cell.variant}: " + "; ".join(covered.message or "" for covered in empty),
        help=f"it has {', '.join(has)}: {remedy}",
    )


def _coverage(name: str, rule: str, requested: tuple[str, ...], toolkit: str, selection: Architectures) -> Coverage:
    return Coverage(component=name, rule=rule, requested=requested, toolkit=toolkit, selection=selection)
