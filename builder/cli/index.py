"""`builder index`: a static package index."""

import os
import shlex
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from builder import terminal
from builder.cli.arguments import PATH, allow_quick_option
from builder.cli.selecting import is_pattern, picked
from builder.errors import BuilderError, NothingToDoError
from builder.hashes import sha256_of
from builder.publish import index
from builder.publish.index import explain as say
from builder.publish.index import people, simple
from builder.publish.index.explain import Machine
from builder.publish.index.table import environment_name, environment_names, fitting
from builder.wheel import kernel_wheel
from builder.wheel.kernel_wheel import KernelWheel
from builder.wheel.options import epoch_of

_PORT = 8000


@click.command()
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=PATH)
@click.option("--output", default="site", show_default=True, type=PATH, help="The site.")
@click.option("--base-url", metavar="URL", help="Where the site will be served; shown in the commands of its pages.")
@click.option("--variants", is_flag=True, help="Also as wheel variants (PEP 825), in variants/: uv chooses by the GPU.")
@click.option("--families", is_flag=True, help="Also for each family of GPUs, in for/torch213-cu130-sm90/ and so on.")
@click.option("--upload-time", metavar="TIME", help="When the new wheels come: 'now', a day or a time; it is kept.")
@click.option("--explain", metavar="MACHINE", help="Say what is in variants/ of DIR, a site, for 'H100:12.8' or 'cpu'.")
@allow_quick_option
def command(
    directories: tuple[Path, ...],
    output: Path,
    base_url: str | None,
    upload_time: str | None,
    explain: str | None,
    *,
    variants: bool,
    families: bool,
    allow_quick: bool,
) -> None:
    """Make a package index of the wheels in each DIR, or add them to an existing index.

    The result is a directory of static files, for any web server: the simple API for pip and uv, and a page per kernel
    for people.
    """
    if explain is not None:
        machine = Machine.parse(explain)
        for line in (line for site in directories for line in say.explain(site, machine)):
            terminal.out(line)
        return
    given = {path.name: path for path in _once(path for folder in _folders(directories) for path in _wheels(folder))}
    came = None if upload_time is None else _time(upload_time)
    with index.held(output):
        known = index.existing(output)
        times = dict.fromkeys(given, came) | {path.name: time for path, time in known.items()}
        settings = index.Settings(
            base_url=base_url,
            with_variants=variants,
            with_families=families,
            before=index.made_before(output) if variants else {},
            uploaded={name: time for name, time in times.items() if time is not None},
        )
        parts = index.parts(({path.name: path for path in known} | given).values(), settings)
        wheels = [each for part in parts for each in part.wheels]
        obstacles = {
            str(each.wheel.path): each.metadata.not_for_release for each in wheels if each.wheel.path.name in given
        }
        kernel_wheel.require_release(obstacles, allowed=allow_quick)
        new = index.write(index.assemble(parts, settings), output)
    terminal.out(f"{output}: {len(wheels)} wheel{'' if len(wheels) == 1 else 's'}, {new} of them new")
    terminal.err(_next(output, wheels, base_url))


def _time(text: str) -> str:
    """Return the upload time of the new wheels: now, or SOURCE_DATE_EPOCH if it is set."""
    if text != "now":
        return simple.parse_time(text)
    is_set = "SOURCE_DATE_EPOCH" in os.environ
    return simple.time_of(epoch_of(os.environ) if is_set else time.time())


def _next(output: Path, wheels: Sequence[KernelWheel], base_url: str | None) -> str:
    """Say how to install from the index."""
    first = min(each.wheel.name for each in wheels)
    found = fitting(wheels)
    mine = {each: one for each, own in found.items() for one in own if one.wheel.name == first}
    url = base_url.rstrip("/") if base_url is not None else f"http://localhost:{_PORT}"
    serve = f"serve it: python -m http.server --directory {shlex.quote(str(output))} {_PORT}\n"
    pages = f"\n{output / 'index.html'} has the commands for every PyTorch and backend" if len(found) > 1 else ""
    lines = [shlex.join(["pip", "install", "--index-url", f"{url}/simple/", first])]
    for name in environment_names(mine)[:1]:
        environment = next(each for each in mine if environment_name(each) == name)
        lines = list(people.pip_lines(mine[environment], environment, f"{url}/for/{name}/simple/"))
    install = "".join(f"\n  {line}" for line in lines)
    return f"{serve if base_url is None else ''}install from it:{install}{pages}"


def _folders(names: Sequence[Path]) -> tuple[Path, ...]:
    """Return the folders that the names and patterns select."""
    found = [
        folder
        for name in names
        for folder in (picked(name, folder_of=_with_wheels, what="a wheel") if is_pattern(name) else (name,))
    ]
    return tuple({path.resolve(): path for path in reversed(found)}.values())[::-1]


def _with_wheels(path: Path) -> Path | None:
    return path if path.is_dir() and any(path.glob("*.whl")) else None


def _once(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Keep one wheel of each file name."""
    found: dict[str, Path] = {}
    for path in paths:
        first = found.setdefault(path.name, path)
        if first is not path and sha256_of(first) != sha256_of(path):
            raise BuilderError(
                f"'{first}' and '{path}' have one name and different content",
                help="a version is published once: give one of them another version",
            )
    return tuple(found.values())


def _wheels(directory: Path) -> tuple[Path, ...]:
    if not directory.is_dir():
        raise NothingToDoError(f"'{directory}' is not a directory", help="name the directory that has the wheels")
    found = tuple(sorted(directory.glob("*.whl")))
    if not found:
        raise NothingToDoError(f"'{directory}' has no wheels", help="`builder build` leaves them in 'dist'")
    return found
