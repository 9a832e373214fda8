"""Estimate the size of a wheel from the last build of its cell on this machine, if its kernel has `max-size`.

An estimate adapts to added and removed sources and architectures: it assumes the same size for each source of an
architecture. It does not know the sources' content or the flags, so it only warns; the audit of the wheel refuses. A
refused build is remembered, too.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from builder import codec
from builder.config.gpus import code_of
from builder.config.wheel_values import WheelSize
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.matrix import Cell, absent_components
from builder.matrix.architectures import compiled_with_ptx
from builder.plan.ask import KernelBuild
from builder.store import Store
from builder.wheel.archive import Wheel
from builder.wording import size as shown

_DEVICE_SOURCES = (".cu", ".hip")
_WAYS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeEstimate:
    """The expected size of a cell's wheel, as far as it is known."""

    variant: str
    limit: WheelSize
    bytes: int | None
    """The size; None if no build of the cell is remembered."""
    ways: tuple[str, ...] = ()
    """Changes that would make it smaller."""

    @property
    def exceeds(self) -> bool:
        """Whether the wheel is larger than the kernel allows."""
        return self.bytes is not None and self.bytes > self.limit.bytes

    @property
    def text(self) -> str:
        """The estimate in words."""
        if self.bytes is None:
            return f"no estimate of its size before its first build here; {self.limit} are allowed"
        found = f"about {shown(self.bytes)} by its last build here"
        if not self.exceeds:
            return f"{found}; {self.limit} are allowed"
        return f"{found}, more than the {self.limit} of wheel.max-size: {'; or '.join(self.ways[:_WAYS])}"


def of(store: Store, kernel: Kernel, cell: Cell) -> SizeEstimate | None:
    """Return the estimate for a cell; None if its kernel has no limit."""
    limit = kernel.config.wheel.max_size
    if limit is None:
        return None
    from builder.audit.size_budget import ways_out  # noqa: PLC0415  start-up time, of kernels without a limit
    from builder.audit.sizes import WheelSizes  # noqa: PLC0415

    none = SizeEstimate(variant=cell.variant, limit=limit, bytes=None)
    noted = store.note(_note(kernel, cell))
    if noted is None:
        return none
    try:
        then = codec.decode(WheelSizes, noted["sizes"])
        share = _share(
            then.unpacked,
            [(each.arch.partition(":")[0], each.size) for each in then.code],
            before=dict(noted["sources"]),
            now=_sources(kernel, cell),
        )
        bytes_now = round(share * then.packed)
    except (KeyError, TypeError, ValueError, AttributeError):  # another version of builder wrote the note
        return none
    return SizeEstimate(variant=cell.variant, limit=limit, bytes=bytes_now, ways=ways_out(then))


def warnings(builds: Iterable[KernelBuild]) -> Iterator[str]:
    """Yield a warning for each cell whose wheel will be too large; none for quick builds."""
    for build in builds:
        for cell in () if build.ask.options.only else build.cells:
            found = of(build.ask.store, build.kernel, cell)
            if found is not None and found.exceeds:
                yield f"warning: {cell.variant}: its wheel will have {found.text}"


def remember(store: Store, kernel: Kernel, cell: Cell, folder: Path) -> None:
    """Remember the sizes of the parts of the wheel in a folder, if there is one; it may be too large or invalid."""
    if kernel.config.wheel.max_size is None:
        return
    from builder.audit import sizes  # noqa: PLC0415

    with contextlib.suppress(BuilderError, OSError):
        for path in folder.glob("*.whl"):
            found = sizes.of(Wheel.read(path))
            store.set_note(_note(kernel, cell), {"sizes": found.to_dict(), "sources": _sources(kernel, cell)})


def _note(kernel: Kernel, cell: Cell) -> str:
    return f"size-{kernel.config.general.name}-{cell.variant}"


def _sources(kernel: Kernel, cell: Cell) -> dict[str, int]:
    """Return the number of sources that a cell compiles for each architecture."""
    left_out = absent_components(kernel.config, cell)
    found: Counter[str] = Counter()
    for name, part in kernel.config.components(cell.backend).items():
        count = sum(PurePosixPath(path).suffix in _DEVICE_SOURCES for path in part.src)
        for arch in () if name in left_out else compiled_with_ptx(part, cell.release):
            found[code_of(arch).real] += count
    return dict(found)


def _share(whole: int, code: Sequence[tuple[str, int]], *, before: Mapping[str, int], now: Mapping[str, int]) -> float:
    """Return the expected ratio of a wheel's new size to its old one, given the old and new sources by architecture.

    `code` has the bytes of device code by architecture, out of `whole` bytes.
    """
    found: Counter[str] = Counter()
    for arch, size in code:
        found[arch] += size
    each_source = {arch: size / before[arch] for arch, size in found.items() if before.get(arch)}
    if not each_source:
        return 1.0
    mean = sum(each_source.values()) / len(each_source)
    known = sum(each_source[arch] * before[arch] for arch in each_source)
    wanted = sum(each_source.get(arch, mean) * count for arch, count in now.items())
    return (whole - known + wanted) / max(whole, 1)
