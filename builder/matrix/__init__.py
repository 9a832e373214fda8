"""The build matrix: the cells of a config, and the reason for each row without a cell."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from builder.config import Backend, Config, Framework, Version
from builder.config.libraries import LibraryName
from builder.config.source_tables import ExtensionName
from builder.errors import BuilderError
from builder.matrix.rules import (
    SETS,
    BackendRequest,
    Cell,
    Decision,
    KeyPath,
    Row,
    Unmet,
    is_noarch,
    left_out,
    may_hold,
    rows,
    unmet,
    unmet_of_extension,
)
from builder.wording import nearest

__all__ = [
    "SETS",
    "AbsentComponent",
    "Cell",
    "Decision",
    "KeyPath",
    "Row",
    "absent",
    "absent_components",
    "decide",
    "extensions_of",
    "is_noarch",
    "linked_libraries",
    "require_backends",
    "rows",
    "select",
    "sets_with_cells",
    "without_absent_extensions",
    "without_rows",
]


def without_rows(backend: Backend) -> str | None:
    """Say how to make the wheel of a backend that has no row in the matrix; None if it has rows."""
    if any(row.backend is backend for row in rows()):
        return None
    return (
        f"`builder render --backend {backend} --output PROJECT` and `pip wheel PROJECT` make its wheel, "
        "which is pure Python"
    )


def require_backends(config: Config, named: Iterable[Backend]) -> None:
    """Refuse backends that a kernel does not have.

    Raises:
        BuilderError: it names the first one, and the kernel's backends.
    """
    own = [backend.value for backend in dict.fromkeys(config.general.backends)]
    for backend in named:
        if backend.value in own:
            continue
        guess = nearest(backend.value, own)
        remedy = f"did you mean '{guess}'?" if guess else f"add \"{backend}\" to 'general.backends', or name one it has"
        raise BuilderError(
            f"'{config.general.name}' has no backend '{backend}': it has {', '.join(own) or 'none'}", help=remedy
        )


def select(config: Config, among: Iterable[Row], *, unbundled: bool = False) -> tuple[Cell, ...]:
    """Return the cells of `config`, in matrix order; `unbundled` adds cells that are not for a release."""
    decisions = decide(config, among, unbundled=unbundled)
    return tuple(decision.cell for decision in decisions if decision.cell is not None)


def decide(config: Config, among: Iterable[Row], *, unbundled: bool = False) -> tuple[Decision, ...]:
    """Return the decision about every row, in matrix order."""
    candidates = tuple(among)
    requests = {backend: BackendRequest.of(config, backend) for backend in {row.backend for row in candidates}}
    reasons = [left_out(requests[row.backend], row, unbundled=unbundled) for row in candidates]
    # The tested row with the newest torch in each group; among equal ones, the first.
    newest: dict[tuple[str, ...], Row] = {}
    for row, why in zip(candidates, reasons, strict=True):
        request = requests[row.backend]
        if why is None and request.merges and newest.setdefault(_group(request, row), row).rank < row.rank:
            newest[_group(request, row)] = row
    taken: dict[tuple[str, str], Row] = {}
    decisions = []
    for row, why in zip(candidates, reasons, strict=True):
        request = requests[row.backend]
        if why is not None:
            decisions.append(why)
        elif request.merges and not request.each_python and newest[_group(request, row)] is not row:
            decisions.append(_merged(request, row, newest[_group(request, row)]))
        else:
            each = row.of_each_python() if request.each_python else (row,)
            decisions += [_kept(request, one, taken) for one in each]
    return tuple(decisions)


def sets_with_cells(config: Config, among: Iterable[Row], backends: Iterable[Backend] = ()) -> tuple[str, ...]:
    """Return the sets of rows in which a config has cells; `backends` restricts them."""
    wanted = frozenset(backends)
    candidates = [row for row in among if not wanted or row.backend in wanted]
    return tuple(name for name in SETS if select(config, (row for row in candidates if row.set == name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentComponent:
    """A component that a cell leaves out, with the reason."""

    name: str
    rule: str
    """`cuda-minver` or `when`."""
    message: str
    key: KeyPath


def absent(config: Config, cell: Cell, only: tuple[str, ...] = ()) -> tuple[AbsentComponent, ...]:
    """Return the components that `cell` leaves out; `only` are the GPUs of a quick build."""
    if cell.noarch:
        return ()
    without, toolkit = _absent_extensions(config, cell, only), cell.release
    found = []
    for name, part in config.components(cell.backend).items():
        minver: Version | None = getattr(part, "cuda_minver", None)
        of_extension, own = without.get(part.extension), unmet(part, cell, only)
        key: KeyPath
        if of_extension is not None:
            key = ("extension", str(part.extension), "when", of_extension.key)
            reason = f" with the extension '{part.extension}': {of_extension.message}"
        elif minver is not None and toolkit is not None and toolkit < minver:
            key = ("kernel", name, "cuda-minver")
            reason = f": CUDA {cell.toolkit} is below its cuda-minver"
        elif own is not None:
            key = ("kernel", name, "when", own.key)
            reason = f": {own.message}"
        else:
            continue
        message = f"component '{name}' is left out{reason}"
        found.append(AbsentComponent(name=name, rule=key[2], message=message, key=key))
    return tuple(found)


def extensions_of(config: Config, cell: Cell, only: tuple[str, ...] = ()) -> tuple[ExtensionName, ...]:
    """Return the names of the extensions that `cell` has; `only` are the GPUs of a quick build."""
    without = _absent_extensions(config, cell, only)
    return tuple(name for name in config.extensions(cell.backend) if name not in without)


def without_absent_extensions(config: Config, cell: Cell, only: tuple[str, ...] = ()) -> Config:
    """Return the config of a kernel that has only the extensions of `cell`; `only` are the GPUs of a quick build."""
    without = _absent_extensions(config, cell, only)
    return replace(
        config,
        extension={name: table for name, table in config.extension.items() if name not in without},
        kernel={name: part for name, part in config.kernel.items() if part.extension not in without},
    )


def linked_libraries(config: Config, cell: Cell) -> tuple[LibraryName, ...]:
    """Return the libraries that a build of `cell` needs; a quick build needs those of the full one."""
    extensions = {name: table for name, table in config.extension.items() if may_hold(table.when, cell)}
    members = {name: part for name, part in config.kernel.items() if part.extension in (None, *extensions)}
    left_out = [name for name, part in members.items() if not may_hold(part.when, cell)]
    return replace(config, extension=extensions, kernel=members).libraries(cell.backend, without=left_out)


def _absent_extensions(config: Config, cell: Cell, only: tuple[str, ...]) -> Mapping[str | None, Unmet]:
    """Return the extensions of the backend that the cell leaves out, with the reasons."""
    # A config reduced to one library has that library's components, but no table for it.
    names = (name for name in config.extension if name in config.extensions(cell.backend))
    reasons = {name: unmet_of_extension(config, name, cell.backend, cell, only) for name in names}
    return {name: why for name, why in reasons.items() if why is not None}


def absent_components(config: Config, cell: Cell, only: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the names of the components that `cell` leaves out."""
    return tuple(one.name for one in absent(config, cell, only))


def _group(request: BackendRequest, row: Row) -> tuple[str, ...]:
    """Return the key of a row's group: all rows of a group share one cell."""
    return (request.backend, row.system) if request.noarch else (request.backend, row.system, row.toolkit or "")


def _kept(request: BackendRequest, row: Row, taken: dict[tuple[str, str], Row]) -> Decision:
    cell = _cell(request, row)
    # The system is in every name except those of noarch cells, which each system has.
    first = taken.setdefault((cell.variant, cell.system), row)
    if first is row:
        return Decision(row=row, cell=cell, rule="built", message=f"built as {cell.variant}")
    message = f"an earlier row ({first}) already gives {cell.variant}"
    return Decision(row=row, rule="merged", message=message, remedy="nothing: one wheel serves both rows")


def _merged(request: BackendRequest, row: Row, newest: Row) -> Decision:
    variant = _cell(request, newest).variant
    if request.noarch:
        message = f"one noarch wheel serves every row: built as {variant}"
        key, remedy = ("general", "backends"), f"a component of {row.backend} gives a wheel for every row"
    else:
        message = f"one stable ABI wheel serves every torch: built with torch {newest.torch} as {variant}"
        key, remedy = ("torch", "stable-abi"), f"without 'stable-abi' for {row.backend}, every torch gets a wheel"
    if newest.torch < row.torch:
        message += f", since nobody has tested the wheels of torch {row.torch}"
    return Decision(row=row, rule="merged", message=message, key=key, remedy=remedy)


def _cell(request: BackendRequest, row: Row) -> Cell:
    stable = request.stable
    tvm_ffi: Version | None = None
    framework = request.config.framework
    if request.noarch:
        framework, variant = Framework.TORCH_NOARCH, row.backend.facts.noarch_variant
    elif framework is Framework.TVM_FFI:
        tvm_ffi, variant = row.tvm_ffi, str(row.tvm_ffi_variant)
    elif framework is Framework.CTYPES:
        variant = f"ctypes-{row.compute}-{row.system}"
    elif stable is not None:
        variant = f"torch-stable-abi{stable.major}{stable.minor}-{row.compute}-{row.system}"
    else:
        variant = str(row.variant) if row.python is None else f"{row.variant}-{row.python}"
    return Cell(
        variant=variant,
        framework=framework,
        backend=row.backend,
        system=row.system,
        torch=row.torch,
        toolkit=row.toolkit,
        compute=row.compute,
        stable_abi=stable,
        tvm_ffi=tvm_ffi,
        python=row.python,
        bundle=row.bundle,
        set=row.set,
    )
