"""The kernels that a command line names: folders, and patterns that pick folders."""

import glob
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from builder import kernel as kernels
from builder import terminal
from builder.cli import completing
from builder.errors import BuilderError, NothingToDoError
from builder.kernel import CONFIG, Kernel
from builder.wording import quoted

_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedKernels:
    """The folders that a command line names, each once."""

    folders: tuple[Path, ...]
    several: bool = False
    """Whether results are shown as those of several kernels: a pattern may pick only one today."""


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
    """Those with the name of an earlier one: their wheels would have the same names, too."""

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """All that is wrong."""
        return (*self.unreadable, *self.clashes)


def _given(_ctx: click.Context, _param: click.Parameter, value: tuple[Path, ...]) -> NamedKernels:
    return find(value or (Path(),))


def kernels_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the folders of kernels, the current one by default; the command gets them as `named`."""
    return click.argument(
        "named",
        metavar="[DIR]...",
        nargs=-1,
        type=click.Path(path_type=Path),
        callback=_given,
        shell_complete=completing.kernels,
    )(command)


def find(names: Sequence[Path]) -> NamedKernels:
    """Return the folders that names and patterns stand for, in their order; a folder that two name counts once.

    A name is taken as it is, so that what is wrong with it is reported. A pattern picks the folders with a build.toml.

    Raises:
        BuilderError: a pattern picks none, or a folder has no kernel but is a folder of kernels.
    """
    problems: list[BuilderError] = []
    folders: dict[str, Path] = {}
    for name in names:
        try:
            found = picked(name, folder_of=_kernel_in, what=f"a {CONFIG}") if is_pattern(name) else (_folder(name),)
        except BuilderError as error:
            problems.append(error)
            continue
        for folder in found:
            folders.setdefault(os.path.realpath(folder), folder)
    if problems:
        raise joined(problems)
    return NamedKernels(folders=tuple(folders.values()), several=len(names) > 1 or any(map(is_pattern, names)))


def joined(errors: Sequence[BuilderError]) -> BuilderError:
    """Return one error that says all of several, with the worst exit code."""
    if len(errors) == 1:
        return errors[0]
    worst = max(errors, key=lambda error: error.exit_code)
    kind = NothingToDoError if worst.exit_code == NothingToDoError.exit_code else BuilderError
    return kind("\nerror: ".join(map(str, errors)))


def is_pattern(name: Path) -> bool:
    """Whether a name stands for the folders that fit it; what is there by that name is that, whatever it looks like."""
    return glob.has_magic(str(name)) and not os.path.lexists(name)


def _folder(name: Path) -> Path:
    """Return the folder of a name, which may be that of the config itself.

    Raises:
        BuilderError: it has no kernel, but its folders have.
    """
    if name.name == CONFIG and not name.is_dir():
        return name.parent
    if name.is_dir() and not os.path.lexists(name / CONFIG):
        inside = [entry.name for entry in sorted(name.iterdir()) if (entry / CONFIG).is_file()]
        if inside:
            shown = ", ".join(inside[:_MOST_SHOWN]) + (", …" if len(inside) > _MOST_SHOWN else "")
            one = len(inside) == 1
            raise BuilderError(
                f"{quoted(str(name))} has no {CONFIG}, but {len(inside)} of its folders {'has' if one else 'have'} "
                f"one: {shown}",
                help=f"name {'it' if one else 'them all'} by a pattern: '{name / '*'}'",
            )
    return name


def _kernel_in(path: Path) -> Path | None:
    """Return the folder of a kernel that a path names, if it does."""
    if path.name == CONFIG and path.is_file():
        return path.parent
    return path if (path / CONFIG).is_file() else None


def picked(pattern: Path, *, folder_of: Callable[[Path], Path | None], what: str) -> tuple[Path, ...]:
    """Return the folders that a pattern picks, by name; `folder_of` says which folder a path that fits stands for.

    Raises:
        NothingToDoError: there is none.
        BuilderError: the pattern is one that this program has not, or a link leads out of the folder that it names.
    """
    text = str(pattern)
    if "**" in text:
        raise BuilderError(
            f"'**' in {quoted(text)}: a pattern names each level of folders",
            help="name several: 'kernels/*' 'kernels/*/*'",
        )
    base = os.path.realpath(_fixed(pattern))
    paths = map(Path, sorted(glob.glob(text)))  # noqa: PTH207  which leaves hidden folders out
    found = tuple(folder for path in paths if (folder := folder_of(path)) is not None)
    for folder in found:
        if not os.path.realpath(folder).startswith(base.rstrip(os.sep) + os.sep):
            raise BuilderError(
                f"{quoted(str(folder))} is a symbolic link out of {quoted(base)}, which no pattern follows",
                help="name it by itself",
            )
    if not found:
        raise NothingToDoError(f"{quoted(text)} picks no folder with {what}", help="look at where they are")
    return found


def _fixed(pattern: Path) -> Path:
    """Return the folder that a pattern names before its first wildcard."""
    parts = pattern.parts
    return Path(*parts[: next(index for index, part in enumerate(parts) if glob.has_magic(part))])


def load(named: NamedKernels) -> LoadedKernels:
    """Read every kernel that is named."""
    found: dict[str, Kernel] = {}
    unreadable: list[Refusal] = []
    clashes: list[Refusal] = []
    for folder in named.folders:
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


def say(refusals: Iterable[Refusal]) -> int:
    """Show what is wrong with kernels, what several have in common once; return the worst exit code, 0 for nothing."""
    whose: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        whose.setdefault(str(refusal.error), []).append(refusal)
    for text, those in whose.items():
        of = f"\n  of {len(those)} kernels: {', '.join(str(each.folder) for each in those)}" if len(those) > 1 else ""
        terminal.err((text if text.startswith(("error", "warning")) else f"error: {text}") + of)
    return max((each.error.exit_code for those in whose.values() for each in those), default=0)


def texts(refusals: Iterable[Refusal]) -> dict[str, str]:
    """Return what is wrong with each kernel by its folder, for programs."""
    found: dict[str, str] = {}
    for refusal in refusals:
        key = refusal.folder.as_posix()
        found[key] = f"{found[key]}\n{refusal.error}" if key in found else str(refusal.error)
    return found
