"""The kernels that a command is about: those that can be read and have a part in what is asked for, and the others."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builder import kernel as kernels
from builder.errors import BuilderError, NothingToDoError
from builder.kernel import CONFIG, Kernel
from builder.matrix.selection import Scope
from builder.wording import quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A kernel that cannot be used, and why."""

    folder: Path
    error: BuilderError


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedKernels:
    """The kernels that can be read, and what is wrong with the others."""

    kernels: tuple[Kernel, ...]
    unreadable: tuple[Refusal, ...] = ()
    clashes: tuple[Refusal, ...] = ()
    """Kernels with the name of an earlier one: their wheels would have the same names, too."""

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """All that is wrong."""
        return (*self.unreadable, *self.clashes)


def load(folders: Sequence[Path], *, several: bool = True) -> LoadedKernels:
    """Read every kernel; of `several`, one that cannot be read does not keep the others from being used.

    Raises:
        BuilderError: the one kernel cannot be read.
    """
    if not several:
        return LoadedKernels(kernels=tuple(map(kernels.load, folders)))
    found: dict[str, Kernel] = {}
    unreadable: list[Refusal] = []
    clashes: list[Refusal] = []
    for folder in folders:
        try:
            kernel = kernels.load(folder)
        except BuilderError as error:
            unreadable.append(Refusal(folder=folder, error=_no_kernel(folder) or error))
            continue
        first = found.setdefault(kernel.config.general.name, kernel)
        if first is not kernel:
            clashes.append(Refusal(folder=folder, error=_of_one_name(first, kernel)))
    return LoadedKernels(kernels=tuple(found.values()), unreadable=tuple(unreadable), clashes=tuple(clashes))


def _no_kernel(folder: Path) -> BuilderError | None:
    """Return what is wrong with a name that is that of no kernel: mostly, a shell has expanded a pattern."""
    if os.path.lexists(folder / CONFIG):
        return None
    why = f"has no {CONFIG}" if folder.is_dir() else "is not a folder" if os.path.lexists(folder) else "is not there"
    return BuilderError(
        f"{quoted(str(folder))} {why}",
        help="name folders of kernels, or a pattern in quotes, as 'kernels/*', which picks only these",
    )


def _of_one_name(first: Kernel, second: Kernel) -> BuilderError:
    return BuilderError(
        f"{quoted(str(first.root))} and {quoted(str(second.root))} are both kernel '{first.config.general.name}'",
        help="give one another 'general.name', or name only one of them",
    )


def joined(errors: Sequence[BuilderError]) -> BuilderError:
    """Return one error that says all of several, with the worst exit code."""
    if len(errors) == 1:
        return errors[0]
    worst = max(errors, key=lambda error: error.exit_code)
    kind = NothingToDoError if worst.exit_code == NothingToDoError.exit_code else BuilderError
    return kind("\nerror: ".join(map(str, errors)))


def texts(refusals: Iterable[Refusal]) -> dict[str, str]:
    """Return what is wrong with each kernel by its folder, for programs."""
    found: dict[str, str] = {}
    for refusal in refusals:
        key = refusal.folder.as_posix()
        found[key] = f"{found[key]}\n{refusal.error}" if key in found else str(refusal.error)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedKernels:
    """Kernels with the scope of each, and why others have no part in what is asked for."""

    scopes: tuple[tuple[Kernel, Scope], ...]
    left_out: Mapping[str, str]
    """Reason by the name of the kernel."""


def among(kernels: Sequence[Kernel], scope: Scope, *, several: bool = True) -> ScopedKernels:
    """Return the scope of each of `several` kernels: those of the backends that it has; one has the whole scope.

    Raises:
        BuilderError: the scope names a backend that none of them has.
    """
    if not several:
        return ScopedKernels(scopes=tuple((kernel, scope) for kernel in kernels), left_out={})
    scopes: list[tuple[Kernel, Scope]] = []
    left_out: dict[str, str] = {}
    for backend in scope.backends:
        if kernels and not any(backend in kernel.config.general.backends for kernel in kernels):
            raise BuilderError(
                f"none of {len(kernels)} kernels has the backend '{backend}'", help="name one that a kernel has"
            )
    for kernel in kernels:
        own = tuple(backend for backend in scope.backends if backend in kernel.config.general.backends)
        if scope.backends and not own:
            left_out[kernel.config.general.name] = f"no backend {' or '.join(map(str, scope.backends))}"
        else:
            scopes.append((kernel, replace(scope, backends=own)))
    return ScopedKernels(scopes=tuple(scopes), left_out=left_out)
