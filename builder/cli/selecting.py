"""Arguments and options that select kernels, by folder or pattern, and cells."""

import glob
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from builder.cli import completing, screen
from builder.cli.arguments import ALL, PATH, BackendType, Converted, Decorator, Name
from builder.config.values import Version
from builder.errors import BuilderError, NothingToDoError
from builder.kernel import CONFIG
from builder.matrix import SETS, rows
from builder.matrix.selection import Scope
from builder.matrix.variant import SYSTEMS
from builder.plan.kernels import NamedKernels, Refusal, joined
from builder.wording import quoted


def _torch(text: str) -> Version:
    """Parse MAJOR.MINOR as a torch of the matrix."""
    version = Version(text)
    known = sorted({row.torch for row in rows()})
    if version not in known:
        raise ValueError(f"no row of the matrix has torch {version}: it has {', '.join(map(str, known))}")
    return version


def variants_option(what: str) -> Decorator:
    """Return the option that names cells by their variants."""
    return click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="V",
        shell_complete=completing.variants,
        help=f"{what}, also as KERNEL:V; may be repeated.",
    )


backends_option = click.option(
    "--backend",
    "backends",
    multiple=True,
    type=BackendType(),
    shell_complete=completing.backends,
    help="Only cells of this backend; may be repeated.",
)


def systems_option(what: str) -> Decorator:
    """Return the option that names systems of cells."""
    return click.option("--system", "systems", type=Name("system", SYSTEMS), multiple=True, help=what)


sets_option = click.option(
    "--set",
    "sets",
    type=Name("set", (*SETS, ALL)),
    multiple=True,
    callback=lambda _ctx, _param, names: SETS if ALL in names else names or Scope().sets,
    help=f"Rows to look at; may be repeated. Default: {SETS[0]}.",
)
torches_option = click.option(
    "--torch",
    "torches",
    type=Converted("torch", _torch),
    multiple=True,
    metavar="MAJOR.MINOR",
    help="Only cells built with this torch; may be repeated.",
)
unbundled_option = click.option("--all", "unbundled", is_flag=True, help="Also cells that are not part of a release.")


_MOST_SHOWN = 8


kernels_argument = click.argument(
    "named",
    metavar="[DIR]...",
    nargs=-1,
    type=PATH,
    callback=lambda _ctx, _param, names: find(names or (Path(),)),
    shell_complete=completing.kernels,
)
"""The folders of kernels, by default the current one; the command gets them as `named`."""


def find(names: Sequence[Path]) -> NamedKernels:
    """Return the folders that names and patterns select, in this order and each once.

    A name is not checked here, so that its problem is reported later. A pattern selects the folders with a build.toml.

    Raises:
        BuilderError: a pattern selects none, or a folder is not a kernel but contains kernels.
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


def is_pattern(name: Path) -> bool:
    """Whether a name is a pattern; the name of an existing file is not."""
    return glob.has_magic(str(name)) and not os.path.lexists(name)


def _folder(name: Path) -> Path:
    """Return the folder of a name, which may be the path of the config."""
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
    """Return the kernel's folder that a path names; None if it names none."""
    if path.name == CONFIG and path.is_file():
        return path.parent
    return path if (path / CONFIG).is_file() else None


def picked(pattern: Path, *, folder_of: Callable[[Path], Path | None], what: str) -> tuple[Path, ...]:
    """Return the folders that a pattern selects, by name; `folder_of` maps a matching path to its folder.

    Raises:
        NothingToDoError: the pattern selects none.
        BuilderError: the pattern is not supported, or a link leads out of its folder.
    """
    text = str(pattern)
    if "**" in text:
        raise BuilderError(
            f"'**' in {quoted(text)}: a pattern names each level of folders",
            help="name several: 'kernels/*' 'kernels/*/*'",
        )
    base = os.path.realpath(Path(*itertools.takewhile(lambda part: not glob.has_magic(part), pattern.parts)))
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


def say(refusals: Iterable[Refusal]) -> int:
    """Show the problems of kernels, each shared one once; return the worst exit code, 0 without problems."""
    whose: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        whose.setdefault(refusal.error.shown, []).append(refusal)
    for text, those in whose.items():
        of = f"\n  of {len(those)} kernels: {', '.join(str(each.folder) for each in those)}" if len(those) > 1 else ""
        screen.err(text + of)
    return max((each.error.exit_code for those in whose.values() for each in those), default=0)
