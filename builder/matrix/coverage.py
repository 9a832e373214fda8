"""Find the requested GPU architectures that a cell gets, before anything is built."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from builder.config import Backend, Config
from builder.config.gpus import Gpu, GpuName, code_of
from builder.config.source_tables import CudaComponent, RocmComponent
from builder.errors import BuilderError, NotHereError
from builder.matrix import Cell, absent, absent_components, architectures, extensions_of
from builder.matrix.architectures import Architectures, compiled_with_ptx
from builder.matrix.rules import KeyPath
from builder.wording import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The architectures that a cell's toolkit compiles for a component that lists some."""

    component: str
    rule: str
    """The key that lists them: `cuda-capabilities` or `rocm-archs`."""
    requested: tuple[str, ...]
    toolkit: str
    """The toolkit's name and version, such as `CUDA 12.6`."""
    selection: Architectures
    full: tuple[str, ...] | None = None
    """The architectures of a full build, if `requested` are the GPUs of a quick one."""

    @property
    def key(self) -> KeyPath:
        """The place of the key in `build.toml`."""
        return "kernel", self.component, self.rule

    @property
    def message(self) -> str | None:
        """The loss in words; None if nothing is lost."""
        lost = ", ".join(self.selection.lost)
        if self.full is not None:
            return f"component '{self.component}' has no code for {lost} with {self.toolkit}" if lost else None
        if not self.selection.compiled:
            asked = ", ".join(self.requested) or "nothing"
            return f"component '{self.component}' asks for {asked}, and {self.toolkit} compiles none of it"
        return f"component '{self.component}' is built without {lost}: not in {self.toolkit}" if lost else None


def of(config: Config, cell: Cell, only: tuple[str, ...] = ()) -> Iterator[Coverage]:
    """Yield the coverage of each component of a cell that lists architectures; nothing for a noarch cell.

    `only` are the GPUs of a quick build; then every component is covered.
    """
    if cell.noarch or cell.release is None:
        return
    left_out = absent_components(config, cell, only)
    for name, part in config.components(cell.backend).items():
        requested: tuple[str, ...] | None
        if isinstance(part, CudaComponent):
            rule, requested = "cuda-capabilities", part.cuda_capabilities
            select = partial(architectures.cuda, requested, cell.release)
        elif isinstance(part, RocmComponent):
            rule, requested = "rocm-archs", part.rocm_archs
            select = partial(architectures.rocm, requested)
        else:
            continue
        asked = only or requested
        if asked is not None and name not in left_out:
            yield Coverage(
                component=name,
                rule=rule,
                requested=asked,
                toolkit=f"{cell.backend.facts.title} {cell.toolkit}",
                selection=select(only),
                full=select().compiled if only else None,
            )


def unserved(config: Config, cell: Cell) -> Iterator[tuple[GpuName, str]]:
    """Yield each required GPU that would lack code in a full build of a cell, with the reason."""
    names = () if cell.noarch or cell.toolkit is None else config.required_gpus(cell.backend)
    if not names:
        return
    left_out = absent_components(config, cell)
    parts = {name: part for name, part in config.components(cell.backend).items() if name not in left_out}
    for name in names:
        served = {key: _serves(compiled_with_ptx(part, cell.release), name.gpu) for key, part in parts.items()}
        lacking = [key for key, serves in served.items() if serves is False]
        if lacking or True not in served.values():
            where = listed(lacking or parts)
            toolkit = f"{cell.backend.facts.title} {cell.toolkit}"
            yield name, f"{name} is required, and gets no code of {where} with {toolkit}"


def _serves(archs: tuple[str, ...], gpu: Gpu) -> bool | None:
    """Whether code for these architectures runs on a GPU; None if it is special code that this GPU does not need."""
    if any(name == gpu.arch or (gpu.backend is Backend.CUDA and architectures.runs(name, gpu.arch)) for name in archs):
        return True
    return None if archs and all(code_of(name).special and "." in name for name in archs) else False


def require(config: Config, cell: Cell, only: tuple[str, ...] = ()) -> None:
    """Refuse a cell with a component that would have no device code, before anything is fetched for it.

    Raises:
        BuilderError: with the architectures of its toolkit or, in a quick build for `only`, of a full build.
        NotHereError: the toolkit knows none of these GPUs.
    """
    for name in () if cell.noarch else (None, *extensions_of(config, cell, only)):
        library = config.of_library(name)
        left = absent(library, cell, only)
        if len(left) == len(library.components(cell.backend)) and any(one.rule == "when" for one in left):
            raise BuilderError(
                f"{cell.variant}: {'; '.join(one.message for one in left)}",
                help="nothing is left to compile: widen the 'when' of a component, or build another cell",
            )
    empty = [covered for covered in of(config, cell, only) if not covered.selection.compiled]
    if empty:
        raise _without_code(cell, only, empty)
    lacking = () if only else tuple(unserved(config, cell))
    if lacking:
        archs = dict.fromkeys(f"'{name.gpu.arch}'" for name, _ in lacking)
        raise BuilderError(
            f"{cell.variant}: " + "; ".join(why for _, why in lacking),
            help=f"add {', '.join(archs)}, or PTX of an earlier GPU, or take it out of require.gpus",
        )


def _without_code(cell: Cell, only: tuple[str, ...], empty: Sequence[Coverage]) -> BuilderError:
    """Return the error about a cell whose components would have no code."""
    message = f"{cell.variant}: " + "; ".join(covered.message or "" for covered in empty)
    select, remedy = partial(architectures.rocm, None), "add one"
    if cell.backend is Backend.CUDA and cell.release is not None:
        select = partial(architectures.cuda, None, cell.release)
        remedy = "add one, or set 'cuda-minver' above this toolkit to leave the component out of this cell"
    if not only:
        return BuilderError(message, help=f"it has {', '.join(select().compiled)}: {remedy}")
    toolkit = empty[0].toolkit
    if not select(only).compiled:
        return NotHereError(
            f"{cell.variant} cannot have code for {', '.join(only)}: {toolkit} does not compile it",
            help=f"{toolkit} compiles {', '.join(select().compiled)}; name another GPU, or a cell of another toolkit",
        )
    full = (f"'{covered.component}' has {', '.join(covered.full or ('none',))}" for covered in empty)
    return BuilderError(message, help="; ".join(full))
