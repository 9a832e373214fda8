"""The kernels of a command: the result for each, or the reason why there is none."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from builder import kernel as kernels
from builder.errors import BuilderError, NothingToDoError
from builder.kernel import CONFIG, Kernel
from builder.matrix.selection import Scope
from builder.wording import quoted, reasons_left_out

T = TypeVar("T")


class SameNameError(BuilderError):
    """Two kernels have the same name, so their wheels would have the same names, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedKernels:
    """The folders that a command line selects, each once."""

    folders: tuple[Path, ...] = ()
    several: bool = False
    """Whether the results have the form for several kernels: also for a pattern that selects only one today."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A kernel that cannot be used, with the reason."""

    folder: Path
    error: BuilderError


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Generic[T]):
    """The results of a command for several kernels, and the reasons why others have none."""

    found: tuple[T, ...]
    left_out: Mapping[str, str]
    """The reasons why the request excludes a kernel, by the kernel's name."""
    refusals: tuple[Refusal, ...]
    several: bool = False
    """Whether they have the form for several kernels."""


def load(folders: Sequence[Path]) -> tuple[tuple[Kernel, ...], tuple[Refusal, ...]]:
    """Read several kernels; return also the refusals, with clashes of names last."""
    found: dict[str, Kernel] = {}
    unreadable: list[Refusal] = []
    clashes: list[Refusal] = []
    for folder in folders:
        try:
            kernel = kernels.load(folder)
        except BuilderError as error:
            unreadable.append(Refusal(folder=folder, error=_no_kernel(folder) or error))
            continue
        name = kernel.config.general.name
        first = found.setdefault(name, kernel)
        if first is not kernel:
            message = f"{quoted(str(first.root))} and {quoted(str(folder))} are both kernel '{name}'"
            remedy = "give one another 'general.name', or name only one of them"
            clashes.append(Refusal(folder=folder, error=SameNameError(message, help=remedy)))
    return tuple(found.values()), (*unreadable, *clashes)


def _no_kernel(folder: Path) -> BuilderError | None:
    """Return the error for a path that is not a kernel: mostly, a shell has expanded a pattern."""
    if os.path.lexists(folder / CONFIG):
        return None
    why = f"has no {CONFIG}" if folder.is_dir() else "is not a folder" if os.path.lexists(folder) else "is not there"
    return BuilderError(
        f"{quoted(str(folder))} {why}",
        help="name folders of kernels, or a pattern in quotes, as 'kernels/*', which picks only these",
    )


def in_scope(named: NamedKernels, scope: Scope) -> Chosen[tuple[Kernel, Scope]]:
    """Read kernels, each with its scope: of several, the scope keeps only the backends that the kernel has.

    Raises:
        BuilderError: the only kernel cannot be read, or the scope names a backend that none of several kernels has.
    """
    if not named.several:
        one = tuple((kernels.load(folder), scope) for folder in named.folders)
        return Chosen(found=one, left_out={}, refusals=())
    loaded, refusals = load(named.folders)
    for backend in scope.backends:
        if loaded and not any(backend in kernel.config.general.backends for kernel in loaded):
            raise BuilderError(
                f"none of {len(loaded)} kernels has the backend '{backend}'", help="name one that a kernel has"
            )
    found: list[tuple[Kernel, Scope]] = []
    left_out: dict[str, str] = {}
    for kernel in loaded:
        own = tuple(backend for backend in scope.backends if backend in kernel.config.general.backends)
        if scope.backends and not own:
            left_out[kernel.config.general.name] = f"no backend {' or '.join(map(str, scope.backends))}"
        else:
            found.append((kernel, replace(scope, backends=own)))
    return Chosen(found=tuple(found), left_out=left_out, refusals=refusals, several=True)


def of_each(
    chosen: Chosen[tuple[Kernel, Scope]],
    make: Callable[[Kernel, Scope], T],
    *,
    why_left_out: Callable[[Kernel, BuilderError], str | None],
    nothing: str,
    remedy: str | None = None,
) -> Chosen[T]:
    """Call `make` for each kernel, and collect the results.

    Args:
        chosen: The kernels, each with its scope.
        make: Makes the result of a kernel. Of several kernels, an error of one does not affect the others.
        why_left_out: Returns a reason if an error means that the request excludes the kernel; else None.
        nothing: The message if there is neither a result nor a problem; the reasons are added.
        remedy: The remedy in that message.

    Raises:
        BuilderError: the error of the only kernel.
        NothingToDoError: there is no result.
    """
    found: list[T] = []
    left_out, refusals = dict(chosen.left_out), list(chosen.refusals)
    for kernel, scope in chosen.found:
        try:
            made = make(kernel, scope)
        except BuilderError as error:
            if not chosen.several:
                raise
            why = why_left_out(kernel, error)
            if why is None:
                refusals.append(Refusal(folder=kernel.root, error=error))
            else:
                left_out[kernel.config.general.name] = why
            continue
        found.append(made)
    if not found and not refusals:
        reasons = (f"  {reason}" for reason in reasons_left_out(left_out))
        raise NothingToDoError("\n".join((nothing, *reasons)), help=remedy)
    return Chosen(found=tuple(found), left_out=left_out, refusals=tuple(refusals), several=chosen.several)


def joined(errors: Sequence[BuilderError]) -> BuilderError:
    """Join several errors into one, with the worst exit code."""
    if len(errors) == 1:
        return errors[0]
    worst = max(errors, key=lambda error: error.exit_code)
    kind = NothingToDoError if worst.exit_code == NothingToDoError.exit_code else BuilderError
    return kind("\nerror: ".join(map(str, errors)))


def texts(refusals: Iterable[Refusal]) -> dict[str, str]:
    """Return the problem of each kernel by folder, for programs."""
    found: dict[str, str] = {}
    for refusal in refusals:
        key = refusal.folder.as_posix()
        found[key] = f"{found[key]}\n{refusal.error}" if key in found else str(refusal.error)
    return found
