"""The locked kernels of cells that Nix builds: fetched and verified as for the local engine, and given to Nix."""

from collections.abc import Mapping
from pathlib import Path

from builder.engine.nix_command import Nix, NixError
from builder.environment.locked_kernels import LockedKernels
from builder.errors import NotHereError, ToolError
from builder.kernel import Kernel, kernel_lock
from builder.store import KERNELS


def bring(kernel: Kernel, wanted: Mapping[str, Path], *, keeper: LockedKernels, nix: Nix) -> None:
    """Bring the kernels of a lock that Nix's store has not.

    Args:
        kernel: The kernel whose lock it is.
        wanted: The place in Nix's store for each digest.
        keeper: What fetches and verifies them.
        nix: Whose store it is.

    Raises:
        LockError: the lock cannot be used.
        ToolError: one cannot be fetched, is not what the lock says, or Nix does not take it.
    """
    for dependency, locked in (kernel_lock.read(kernel.root) or {}).items():
        place = wanted.get(locked.digest)
        if place is None or place.exists():
            continue
        try:
            tree = keeper.tree(dependency, {dependency: locked})
        except NotHereError as error:
            raise ToolError(error.message, help=error.help) from error
        with keeper.store.use(f"{KERNELS}-{locked.digest}"):
            nix.add_folder(tree.folder)
        if not place.exists():
            raise NixError(
                f"{kernel_lock.named(dependency)} is not at '{place}' after it was added",
                help="was its folder removed meanwhile? Build again",
            )
