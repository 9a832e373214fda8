"""`builder lock`: lock the kernels that a kernel depends on, by commit and hash."""

import os
from pathlib import Path

import click

from builder import kernel as kernels
from builder import terminal
from builder.cli.arguments import kernel_argument, store_option
from builder.config.v5 import KernelDependency
from builder.environment import locked_kernels
from builder.environment.download import Fetching
from builder.environment.locked_kernels import LockedKernels
from builder.errors import BuilderError, DifferenceError, NothingToDoError
from builder.files import write_atomic
from builder.make import kernel_lock
from builder.make.kernel_lock import Locks, named
from builder.store import Store


@click.command()
@kernel_argument
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if the lock names too little or too much.")
@click.option(
    "--from-folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Take kernels from this folder, laid out like the cache of the hub's client, and not from the hub. "
    "[env: BUILDER_KERNELS]",
)
@store_option
def command(*, kernel: Path, check: bool, from_folder: Path | None, store: Path) -> None:
    """Lock the kernels of kernel-depends: write kernels.lock, with the commit and the hash of each."""
    loaded = kernels.load(kernel)
    wanted = locked_kernels.depends(loaded)
    try:
        before = kernel_lock.read(kernel)
    except kernel_lock.LockError as error:
        if check or not wanted:
            raise
        terminal.err(f"warning: {error.message}")  # it is replaced: a damaged lock counts as none
        before = None
    if not wanted and not before:
        text = f"'{kernel}' depends on no kernels"
        if not check:
            raise NothingToDoError(text, help="name some in kernel-depends of build.toml")
        terminal.out(f"{text}: nothing to lock")
        return
    fetching = Fetching(store=Store(store), environ=os.environ, progress=terminal.err)
    keeper = locked_kernels.keeper(fetching, folder=from_folder)
    if not fetching.store.prepare():
        raise BuilderError(f"the store '{store}' cannot be written", help="name another one with --store")
    if check:
        _check(keeper, wanted, before, kernel)
        return
    locks = keeper.lock(wanted)
    _show(before or {}, locks)
    write_atomic(kernel / kernel_lock.NAME, kernel_lock.dump(locks))


def _check(keeper: LockedKernels, wanted: tuple[KernelDependency, ...], locks: Locks | None, root: Path) -> None:
    """Compare a lock with the dependencies, and verify each kernel."""
    if locks is None:
        raise DifferenceError(f"'{root}' has no {kernel_lock.NAME}", help="write it: builder lock")
    missing = [each for each in wanted if each not in locks]
    if missing:
        raise DifferenceError(
            f"{kernel_lock.NAME} lacks {', '.join(map(named, missing))}", help="write it anew: builder lock"
        )
    needed = keeper.needed(wanted, locks)
    unused = kernel_lock.ordered(locks.keys() - needed.keys())
    if unused:
        raise DifferenceError(
            f"{kernel_lock.NAME} has {', '.join(map(named, unused))}, which nothing depends on",
            help="write it anew: builder lock",
        )
    terminal.out(f"{len(needed)} locked kernels: all good")


def _show(before: Locks, after: Locks) -> None:
    for each in kernel_lock.ordered(before.keys() | after.keys()):
        old, new = before.get(each), after.get(each)
        if new is None:
            terminal.out(f"- {named(each)}")
        elif old is None:
            terminal.out(f"+ {named(each)} at {new.short}")
        elif old != new:
            terminal.out(f"! {named(each)} from {old.short} to {new.short}")
    if before == after:
        terminal.out("nothing to change")
