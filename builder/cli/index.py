"""`builder index`: a static package index."""

from pathlib import Path

import click

from builder import index, shipped
from builder.errors import NothingToDoError


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--output", default="site", show_default=True, type=click.Path(path_type=Path), help="The site.")
@click.option("--base-url", metavar="URL", help="Where the site will be served; shown in the commands of its pages.")
@click.option("--variants", is_flag=True, help="Also as wheel variants (drafts of PEP 817 and 825), in variants/.")
def command(directory: Path, output: Path, base_url: str | None, *, variants: bool) -> None:
    """Make a package index of the wheels in DIR, or add them to the one that is there.

    The result is a directory of static files, for any web server: the simple API for pip and uv, and a page
    per kernel for people.
    """
    wheels = _wheels(directory)
    known = {path.name: path for path in index.existing_wheels(output)}
    read = shipped.read_all([*wheels, *(path for name, path in known.items() if name not in {w.name for w in wheels})])
    new = index.write(index.build(read, base_url=base_url, with_variants=variants), output)
    click.echo(f"{output}: {len(read)} wheels, {new} of them new")


def _wheels(directory: Path) -> tuple[Path, ...]:
    if not directory.is_dir():
        raise NothingToDoError(f"'{directory}' is not a directory", help="name the directory that has the wheels")
    found = tuple(sorted(directory.glob("*.whl")))
    if not found:
        raise NothingToDoError(f"'{directory}' has no wheels", help="`builder build` leaves them in 'dist'")
    return found
