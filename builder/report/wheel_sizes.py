"""What takes the bytes of the wheels of a build, by architecture, as its page shows it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from builder.audit import sizes
from builder.audit.sizes import WheelSizes
from builder.engine.outcome import CellOutcome
from builder.errors import BuilderError
from builder.wheel.archive import Wheel
from builder.wording import escaped, size

_NAMED = 0.05
"""The share of a wheel from which a file without device code is named."""
_REST = "code for processors and data, in libraries with code for GPUs"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRow:
    """A part of a wheel."""

    what: str
    size: str
    share: str
    """Of the unpacked wheel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSection:
    """A wheel and its parts, the largest first."""

    label: str
    """The cell."""
    words: str
    """Its size, or why that is not known."""
    rows: tuple[SizeRow, ...]


def of(outcomes: Iterable[CellOutcome]) -> Iterator[WheelSection]:
    """Yield what takes the bytes of each wheel; of one that cannot be read, why."""
    for outcome in outcomes:
        if outcome.wheel is not None:
            try:
                found = sizes.of(Wheel.read(outcome.wheel))
            except (BuilderError, OSError) as error:
                said = error.message if isinstance(error, BuilderError) else error.strerror or "it cannot be read"
                yield WheelSection(label=outcome.label, words=escaped(said), rows=())
            else:
                yield section(outcome.label, found)


def section(label: str, found: WheelSizes) -> WheelSection:
    """Return the parts of a wheel: device code by architecture, whatever its library, and the files without any."""
    whole = sum(file.size for file in found.files)
    parts: Counter[str] = Counter()
    small = []
    for file in found.files:
        for code in file.code:
            parts[code.what] += code.size
        if file.code:
            parts[_REST] += file.rest
        elif file.size >= _NAMED * whole:
            parts[file.name] += file.size
        else:
            small.append(file.size)
    rows = sorted(parts.items(), key=lambda part: (-part[1], part[0]))
    if sum(small):
        rows.append((f"{len(small)} other file{'' if len(small) == 1 else 's'}", sum(small)))
    return WheelSection(
        label=label,
        words=f"{size(found.packed)}, unpacked {size(whole)}",
        rows=tuple(
            SizeRow(what=escaped(what), size=size(count), share=f"{100 * count / max(whole, 1):.0f} %")
            for what, count in rows
        ),
    )
