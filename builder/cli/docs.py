"""`builder docs`: show pages of the documentation, or one text with all pages for authors of kernels."""

from collections.abc import Iterator
from pathlib import Path

import click

from builder import resources, terminal
from builder.errors import BuilderError
from builder.wording import nearest, quoted

PAGES = resources.CMAKE.parent / "docs"
FOR_AGENTS = (
    "tutorial.md",
    "config.md",
    "author-loop.md",
    "howto/backends.md",
    "howto/stable-abi.md",
    "loadtest.md",
    "publishing.md",
    "errors/README.md",
)
"""The pages for the author of a kernel, in reading order; the command line follows."""


@click.command()
@click.argument("page", metavar="[PAGE]", required=False)
@click.option(
    "--for-agents", is_flag=True, help="Show everything that a kernel's author needs as one text, for a coding agent."
)
def command(page: str | None, *, for_agents: bool) -> None:
    """Show a page of the documentation; without PAGE, list all pages.

    With --for-agents: the tutorial, the keys of a build.toml, the how-tos, the codes and the whole command line as one
    Markdown text, for the instructions of a coding agent.
    """
    if for_agents and page is not None:
        raise BuilderError("--for-agents has pages of its own", help="leave out the page, or the option")
    if for_agents:
        terminal.document("\n".join(_for_agents()))
    elif page is None:
        for name in _names():
            terminal.out(name)
    else:
        terminal.document(_read(page))


def _for_agents() -> Iterator[str]:
    from builder.cli import reference  # noqa: PLC0415  imports every command

    for name in FOR_AGENTS:
        yield f"<!-- docs/{name} -->\n\n{_read(name)}"
    yield f"<!-- docs/cli.md -->\n\n{reference.page()}"


def _names() -> tuple[str, ...]:
    return tuple(sorted(path.relative_to(PAGES).as_posix() for path in PAGES.rglob("*.md")))


def _read(page: str) -> str:
    """Return a page by its name, with or without the suffix."""
    names = _names()
    name = page if page.endswith(".md") else f"{page}.md"
    if name not in names:
        guess = nearest(name, names)
        remedy = f"did you mean '{guess}'?" if guess else "`builder docs` names all pages"
        raise BuilderError(f"{quoted(page)} is no page of the documentation", help=remedy)
    return Path(PAGES / name).read_text(encoding="utf-8")
