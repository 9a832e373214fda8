"""Which cells of several kernels a command is about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from builder import terminal
from builder.cli import selecting, several
from builder.cli.several import LoadedKernels, Refusal
from builder.errors import BuilderError, NothingToDoError
from builder.kernel import Kernel
from builder.matrix import Cell
from builder.matrix.quick import TargetGpus
from builder.matrix.selection import Scope
from builder.wording import nearest, quoted, reasons_left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRequest:
    """Which cells a command line asks for."""

    scope: Scope
    archs: TargetGpus | str | None
    variants: tuple[str, ...]
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenKernel:
    """The cells of a kernel, and the GPUs that they are built for alone."""

    kernel: Kernel
    cells: tuple[Cell, ...]
    only: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenKernels:
    """The cells of several kernels, and why others have none."""

    chosen: tuple[ChosenKernel, ...]
    left_out: Mapping[str, str]
    """Why a kernel has nothing of what is asked for, by its name."""
    refusals: tuple[Refusal, ...]

    def without(self, refusals: Sequence[Refusal]) -> "ChosenKernels":
        """Return the same, with more kernels refused."""
        refused = {refusal.folder for refusal in refusals}
        chosen = tuple(each for each in self.chosen if each.kernel.root not in refused)
        return replace(self, chosen=chosen, refusals=(*self.refusals, *refusals))

    def say(self) -> int:
        """Show what is wrong with kernels and which have no part, and return the worst exit code.

        Raises:
            NothingToDoError: there is no cell, and nothing is wrong.
        """
        reasons = tuple(reasons_left_out(self.left_out))
        if not self.chosen and not self.refusals:
            first = "no cell of any kernel is selected: there is nothing to build"
            raise NothingToDoError("\n".join((first, *(f"  {reason}" for reason in reasons))))
        for reason in reasons:
            terminal.err(f"note: {reason}")
        return several.say(self.refusals)


def choose(loaded: LoadedKernels, request: CellRequest) -> ChosenKernels:
    """Return the cells of each kernel that is asked for.

    Raises:
        BuilderError: a backend or a variant that no kernel has.
    """
    scoped = selecting.among(loaded.kernels, request.scope)
    variants = _variants([kernel for kernel, _ in scoped.scopes], request) if request.variants else None
    left_out = dict(scoped.left_out)
    chosen: list[ChosenKernel] = []
    refusals = list(loaded.refusals)
    for kernel, scope in scoped.scopes:
        name = kernel.config.general.name
        own = () if variants is None else variants[name]
        if variants is not None and not own:
            left_out[name] = "no cell that is named"
            continue
        try:
            found, only = selecting.for_gpus(kernel, scope, request.archs, variants=own, environ=request.environ)
        except NothingToDoError:
            left_out[name] = "no cell is selected"
        except selecting.NoGpuCodeError as error:
            left_out[name] = error.message
        except BuilderError as error:
            refusals.append(Refusal(folder=kernel.root, error=error))
        else:
            chosen.append(ChosenKernel(kernel=kernel, cells=found, only=only))
    return ChosenKernels(chosen=tuple(chosen), left_out=left_out, refusals=tuple(refusals))


def _variants(kernels: Sequence[Kernel], request: CellRequest) -> Mapping[str, tuple[str, ...]]:
    """Return the variants of each kernel that `VARIANT` or `KERNEL:VARIANT` names.

    Raises:
        NothingToDoError: naming every one that there is not.
    """
    known = {str(kernel.config.general.name): selecting.known(kernel, request.scope) for kernel in kernels}
    found: dict[str, list[str]] = {name: [] for name in known}
    problems: list[BuilderError] = []
    for word in request.variants:
        owner, _, variant = word.rpartition(":")
        if owner and owner not in known:
            problems.append(_unknown(word, f"no kernel {quoted(owner)} is named", nearest(owner, tuple(known))))
            continue
        whose = [name for name in ((owner,) if owner else known) if variant in known[name]]
        if not whose:
            names = tuple(dict.fromkeys(chain.from_iterable((known[owner],) if owner else known.values())))
            where = f"no such cell of '{owner}'" if owner else "no kernel has such a cell"
            problems.append(_unknown(word, where, nearest(variant, names)))
        for name in whose:
            found[name].append(variant)
    if problems:
        raise several.joined(problems)
    return {name: tuple(words) for name, words in found.items()}


def _unknown(word: str, why: str, guess: str | None) -> NothingToDoError:
    remedy = "`builder matrix --format names` shows what there is" if guess is None else f"did you mean '{guess}'?"
    return NothingToDoError(f"{quoted(word)}: {why}", help=remedy)
