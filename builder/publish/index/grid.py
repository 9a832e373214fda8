"""The matrix of one version of a kernel as a grid: what exists, and how to install it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from builder.build.loadtest import record
from builder.config import Framework
from builder.matrix.variant import Variant
from builder.wheel.kernel_wheel import Shipped

_UNIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
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
class Place:
    """Where a row and a column meet."""

    column: str
    entries: tuple[Entry, ...]
    """The wheels there are; mostly one, or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row of the grid: one compute platform on one system."""

    compute: str
    system: str
    places: tuple[Place, ...]
    """One for each column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """One version of a kernel."""

    version: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    count: int


def grids(wheels: Iterable[Shipped], *, files: str) -> tuple[Grid, ...]:
    """Return a grid for each version, the newest first; `files` leads from the page to the wheels."""
    versions: dict[str, list[Shipped]] = {}
    for shipped in sorted(wheels, key=lambda shipped: shipped.wheel.version, reverse=True):
        versions.setdefault(shipped.wheel.version.public, []).append(shipped)
    return tuple(_grid(version, found, files=files) for version, found in versions.items())


def _grid(version: str, wheels: Sequence[Shipped], *, files: str) -> Grid:
    columns = sorted({_column(shipped.variant) for shipped in wheels})
    places: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for shipped in sorted(wheels, key=lambda shipped: shipped.wheel.path.name):
        line = places.setdefault(_line(shipped.variant), {})
        line.setdefault(_title(shipped.variant), []).append(_entry(shipped, files=files))
    titles = tuple(dict.fromkeys(title for _, title in columns))
    lines = tuple(
        Line(
            compute=compute,
            system=system,
            places=tuple(Place(column=title, entries=tuple(found.get(title, ()))) for title in titles),
        )
        for (compute, system), found in sorted(places.items())
    )
    return Grid(version=version, columns=titles, lines=lines, count=len(wheels))


def _column(variant: Variant) -> tuple[tuple[int, ...], str]:
    order = (0, 0, 0) if variant.version is None else (1, variant.version.major, variant.version.minor)
    return order, _title(variant)


def _title(variant: Variant) -> str:
    match variant.framework:
        case Framework.TORCH_NOARCH:
            return "any torch"
        case Framework.TVM_FFI:
            return f"tvm-ffi {variant.version}"
        case Framework.TORCH:
            return f"torch ≥ {variant.version}" if variant.stable else f"torch {variant.version}"


def _line(variant: Variant) -> tuple[str, str]:
    return variant.compute, variant.system or "any system"


def _entry(shipped: Shipped, *, files: str) -> Entry:
    name = shipped.wheel.path.name
    return Entry(
        variant=str(shipped.variant),
        filename=name,
        url=f"{files}/{quote(name)}",
        size=human(shipped.size),
        sha256=shipped.sha256,
        requirement=f"{shipped.wheel.name}=={shipped.wheel.version}",
        load_test=_load_test(shipped),
    )


def _load_test(shipped: Shipped) -> str:
    """Say what the record beside a wheel says; a wheel says nothing of the machine that tested it."""
    known = record.read(shipped.wheel.path, sha256=shipped.sha256)
    return "not known, as it has no record" if known is None else known.words


def human(size: int) -> str:
    """Return a size in the unit a person would use."""
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < _UNIT:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= _UNIT
    return f"{amount:.1f} GB"
