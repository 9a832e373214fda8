"""The kernels that a command is about: what it makes of each, and why it makes nothing of others."""

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
    """A kernel has the name of an earlier one: their wheels would have the same names, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A kernel that cannot be used, and why."""

    folder: Path
    error: BuilderError


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen(Generic[T]):
    """What a command makes of kernels, and why it makes nothing of others."""

    found: tuple[T, ...]
    left_out: Mapping[str, str]
    """The reason for which a kernel has no part in what is asked for, by its name."""
    refusals: tuple[Refusal, ...]


def load(folders: Sequence[Path]) -> tuple[tuple[Kernel, ...], tuple[Refusal, ...]]:
    """Read several kernels; return also what is wrong with those that cannot be used: their names come last."""
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
    """Return what is wrong with a name that is that of no kernel: mostly, a shell has expanded a pattern."""
    if os.path.lexists(folder / CONFIG):
        return None
    why = f"has no {CONFIG}" if folder.is_dir() else "is not a folder" if os.path.lexists(folder) else "is not there"
    return BuilderError(
        f"{quoted(str(folder))} {why}",
        help="name folders of kernels, or a pattern in quotes, as 'kernels/*', which picks only these",
    )


def in_scope(folders: Sequence[Path], scope: Scope, *, several: bool) -> Chosen[tuple[Kernel, Scope]]:
    """Read kernels, each with the part of a scope that it has: of `several`, only the backends of each count.

    Raises:
        BuilderError: the one kernel cannot be read, or the scope names a backend that none of several has.
    """
    if not several:
        one = tuple((kernels.load(folder), scope) for folder in folders)
        return Chosen(found=one, left_out={}, refusals=())
    loaded, refusals = load(folders)
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
    return Chosen(found=tuple(found), left_out=left_out, refusals=refusals)


def of_each(
    chosen: Chosen[tuple[Kernel, Scope]],
    make: Callable[[Kernel, Scope], T],
    *,
    several: bool,
    why_left_out: Callable[[Kernel, BuilderError], str | None],
    nothing: str,
    remedy: str | None = None,
) -> Chosen[T]:
    """Return what is made of each kernel.

    Args:
        chosen: The kernels, each with its scope.
        make: What makes it. Of `several`, the error of one keeps no other from being made.
        several: Whether they are shown as several.
        why_left_out: Returns the reason for which an error means that the kernel has no part in what is asked for;
            None for one that says what is wrong with it.
        nothing: What is said where nothing is made of any, and nothing is wrong; the reasons are added.
        remedy: What helps then.

    Raises:
        BuilderError: that of the one kernel.
        NothingToDoError: nothing is made of any.
    """
    found: list[T] = []
    left_out, refusals = dict(chosen.left_out), list(chosen.refusals)
    for kernel, scope in chosen.found:
        try:
            made = make(kernel, scope)
        except BuilderError as error:
            if not several:
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
    return Chosen(found=tuple(found), left_out=left_out, refusals=tuple(refusals))


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
