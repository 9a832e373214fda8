"""Submodules that a project includes files of, as foreign sources of a config."""

import configparser
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.config.sources import SourceName, SourceUrl
from builder.config.values import InvalidValueError
from builder.kernel import git
from builder.kernel.git import Checkout
from builder.port.todo import Todo


@dataclass(frozen=True, slots=True, kw_only=True)
class Submodule:
    """One `[sources.<name>]`."""

    name: str
    path: str
    url: str
    commit: str


def declared(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the folder and the address of each submodule that `.gitmodules` names, sorted."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string((root / ".gitmodules").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, configparser.Error):
        return
    found = {parser.get(name, "path", fallback=""): parser.get(name, "url", fallback="") for name in parser.sections()}
    yield from sorted((path, url) for path, url in found.items() if path)


def absent(root: Path) -> tuple[str, ...]:
    """Return the folders of submodules that have no files."""
    return tuple(path for path, _ in declared(root) if not _has_files(root / path))


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def sources(root: Path, included: frozenset[str], todo: Todo) -> Iterator[Submodule]:
    """Yield the foreign sources that include folders name."""
    for path, url in declared(root):
        name = source_name(path)
        if name not in included:
            continue
        commit = _commit(root, path)
        try:
            address = str(SourceUrl(url))
        except InvalidValueError:
            todo.add(f"the submodule '{path}' has the address '{url}': write a whole URL", at=".gitmodules:1")
            address = f"https://example.com/{name}"
        if commit is None:
            todo.add(f"write the commit of the submodule '{path}' into sources.{name}.rev", at=".gitmodules:1")
        yield Submodule(name=name, path=path, url=address, commit=commit or "0" * 40)


def source_name(path: str) -> str:
    """Return the name of the source tree that a submodule becomes."""
    guess = re.sub(r"[^a-z0-9_-]+", "-", path.rpartition("/")[2].lower()).strip("-_")
    return guess if SourceName.matches(guess) else "foreign"


def _commit(root: Path, path: str) -> str | None:
    """Return the commit of a submodule that the repository records."""
    checkout = Checkout.around(root) if git.is_here() else None
    if checkout is None:
        return None
    listed = checkout.ask("ls-tree", "HEAD", "--", f"{checkout.inside}/{path}".lstrip("/"))
    found = re.match(r"160000 commit ([0-9a-f]{40})\t", listed.output)
    return found[1] if found else None
