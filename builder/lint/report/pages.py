"""The page of the documentation that explains a code."""

from pathlib import Path

from builder import resources
from builder.errors import BuilderError

PAGES = resources.CMAKE.parent / "docs" / "errors"


def page_of(code: str, pages: Path = PAGES) -> str:
    """Return the page of `code` as Markdown.

    Raises:
        BuilderError: there is no such code.
    """
    path = pages / f"{code}.md"
    known = sorted(page.stem for page in pages.glob("B*.md"))
    if code not in known:
        near = f"the codes are {known[0]} to {known[-1]}" if known else "this installation has no documentation"
        raise BuilderError(f"no page explains '{code}'", help=near)
    return path.read_text(encoding="utf-8")


def link(code: str) -> str:
    """Return the page's path in the project."""
    return f"docs/errors/{code}.md"
