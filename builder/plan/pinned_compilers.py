"""Build with the pinned compilers, and not with those of this machine (`--toolchain pinned`)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from builder import toolchain
from builder.config import Backend
from builder.environment import compilers
from builder.matrix import Cell
from builder.plan.options import Options


def used(options: Options, cells: Sequence[Cell], progress: Callable[[str], None]) -> Options:
    """Return options by which cells are built with the pinned compilers, which are fetched if the store lacks them.

    XPU keeps the compiler of oneAPI, which compiles for host and device at once; a wheel without code has none.

    Raises:
        NotHereError: none are pinned for a system, or no mirror is known.
        ToolError: they cannot be fetched, or are not what is pinned.
        StoreError: the store cannot be written.
    """
    compiled = [cell for cell in cells if not cell.noarch and cell.backend is not Backend.XPU]
    if not options.crosses:  # cells of other systems are skipped
        compiled = [cell for cell in compiled if not toolchain.crosses(cell)]
    keeper = compilers.Keeper(store=options.store, environ=options.environ, progress=progress)
    folders = {target: keeper.folder(target) for target in sorted({cell.system for cell in compiled})}
    if not folders:
        return options
    return replace(options, environ=compilers.variables(folders, options.environ), compilers=tuple(folders.values()))
