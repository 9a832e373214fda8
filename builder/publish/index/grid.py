"""The matrix of one version of a kernel as a grid: what exists, and how to install it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from builder import wording
from builder.build.loadtest import record
from builder.config import Framework
from builder.matrix.variant import Variant
from builder.wheel.kernel_wheel import KernelWheel


@dataclass(frozen=True, slots=True, kw_only=True)
class GridWheel:
    """A wheel, as a person sees it."""

    variant: str
    filename: str
    url: str
    size: str
    sha256: str
    requirement: str
    load_test: str
    """What became of its load test, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCell:
    """Where a row and a column meet."""

    column: str
    wheels: tuple[GridWheel, ...]
    """The wheels there are; mostly one, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRow:
    """A row of the grid: one compute platform on one system."""

    compute: str
    system: str
    cells: tuple[GridCell, ...]
    """One for each column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """One version of a kernel."""

    version: str
    columns: tuple[str, ...]
    rows: tuple[GridRow, ...]
    count: int


def grids(wheels: Iterable[KernelWheel], *, files: str) -> tuple[Grid, ...]:
    """Return a grid for each version, the newest first; `files` leads from the page to the wheels."""
    versions: dict[str, list[KernelWheel]] = {}
    for kernel_wheel in sorted(wheels, key=lambda kernel_wheel: kernel_wheel.wheel.version, reverse=True):
        versions.setdefault(kernel_wheel.wheel.version.public, []).append(kernel_wheel)
    return tuple(_grid(version, found, files=files) for version, found in versions.items())


def _grid(version: str, wheels: Sequence[KernelWheel], *, files: str) -> Grid:
    columns = sorted({_column(kernel_wheel.variant) for kernel_wheel in wheels})
    by_row: dict[tuple[str, str], dict[str, list[GridWheel]]] = {}
    for kernel_wheel in sorted(wheels, key=lambda kernel_wheel: kernel_wheel.wheel.path.name):
        row = by_row.setdefault(_row(kernel_wheel.variant), {})
        row.setdefault(_title(kernel_wheel.variant), []).append(_grid_wheel(kernel_wheel, files=files))
    titles = tuple(dict.fromkeys(title for _, title in columns))
    rows = tuple(
        GridRow(
            compute=compute,
            system=system,
            cells=tuple(GridCell(column=title, wheels=tuple(found.get(title, ()))) for title in titles),
        )
        for (compute, system), found in sorted(by_row.items())
    )
    return Grid(version=version, columns=titles, rows=rows, count=len(wheels))


def _column(variant: Variant) -> tuple[tuple[int, ...], str]:
    order = (0, 0, 0) if variant.version is None else (1, variant.version.major, variant.version.minor)
    return order, _title(variant)


def _title(variant: Variant) -> str:
    match variant.framework:
        case Framework.TORCH_NOARCH:
            return "any torch"
        case Framework.CTYPES:
            return "any framework"
        case Framework.TVM_FFI:
            return f"tvm-ffi {variant.version}"
        case Framework.TORCH:
            return f"torch ≥ {variant.version}" if variant.stable else f"torch {variant.version}"


def _row(variant: Variant) -> tuple[str, str]:
    return variant.compute, variant.system or "any system"


def _grid_wheel(kernel_wheel: KernelWheel, *, files: str) -> GridWheel:
    name = kernel_wheel.wheel.path.name
    return GridWheel(
        variant=str(kernel_wheel.variant),
        filename=name,
        url=f"{files}/{quote(name)}",
        size=wording.size(kernel_wheel.size),
        sha256=kernel_wheel.sha256,
        requirement=f"{kernel_wheel.wheel.name}=={kernel_wheel.wheel.version}",
        load_test=_load_test(kernel_wheel),
    )


def _load_test(kernel_wheel: KernelWheel) -> str:
    """Return the load test in the record of a wheel; the wheel itself says nothing of the machine that tested it."""
    known = record.read(kernel_wheel.wheel.path, sha256=kernel_wheel.sha256)
    return "not known, as it has no record" if known is None else known.words
