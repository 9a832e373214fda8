"""`builder index`: a static package index."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from builder import terminal
from builder.cli.arguments import allow_quick_option
from builder.errors import NothingToDoError
from builder.publish import index
from builder.wheel import kernel_wheel, release

_INSTALLABLE = re.compile(r"for/[^/]+/simple/index\.html")
_PORT = 8000


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--output", default="site", show_default=True, type=click.Path(path_type=Path), help="The site.")
@click.option("--base-url", metavar="URL", help="Where the site will be served; shown in the commands of its pages.")
@click.option("--variants", is_flag=True, help="Also as wheel variants (drafts of PEP 817 and 825), in variants/.")
@allow_quick_option
def command(directory: Path, output: Path, base_url: str | None, *, variants: bool, allow_quick: bool) -> None:
    """Make a package index of the wheels in DIR, or add them to the one that is there.

    The result is a directory of static files, for any web server: the simple API for pip and uv, and a page
    per kernel for people.
    """
    wheels = _wheels(directory)
    known = {path.name: path for path in index.existing_wheels(output)}
    read = kernel_wheel.read_all(
        [*wheels, *(path for name, path in known.items() if name not in {w.name for w in wheels})]
    )
    mine = {str(each.wheel.path): each.not_for_release for each in read if each.wheel.path in wheels}
    release.require(mine, allowed=allow_quick)
    site = index.build(read, base_url=base_url, with_variants=variants)
    new = index.write(site, output)
    terminal.out(f"{output}: {len(read)} wheel{'' if len(read) == 1 else 's'}, {new} of them new")
    terminal.err(_next(output, tuple(site), base_url, shlex.quote(read[0].wheel.name)))


def _next(output: Path, site: Sequence[str], base_url: str | None, name: str) -> str:
    """Return the next step: how to install from the index."""
    places = [path.removesuffix("index.html") for path in site if _INSTALLABLE.fullmatch(path)]
    mine = next((place for place in places if f"{place}{name}/index.html" in site), "simple/")
    url = base_url.rstrip("/") if base_url is not None else f"http://localhost:{_PORT}"
    serve = f"serve it: python -m http.server --directory {shlex.quote(str(output))} {_PORT}\n"
    more = f"\n{output / 'index.html'} has the commands for every PyTorch and backend" if len(places) > 1 else ""
    return f"{serve if base_url is None else ''}install from it: pip install --index-url {url}/{mine} {name}{more}"


def _wheels(directory: Path) -> tuple[Path, ...]:
    if not directory.is_dir():
        raise NothingToDoError(f"'{directory}' is not a directory", help="name the directory that has the wheels")
    found = tuple(sorted(directory.glob("*.whl")))
    if not found:
        raise NothingToDoError(f"'{directory}' has no wheels", help="`builder build` leaves them in 'dist'")
    return found
