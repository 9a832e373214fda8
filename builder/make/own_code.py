"""Which builder this is: its version, and a digest of all of its code and data that decides a wheel's bytes."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePosixPath

from builder import __version__, resources, toml
from builder.hashes import sha256, sha256_of

LIST = resources.DATA / "decides-bytes.toml"


@cache
def identity() -> str:
    """Return the version of `builder` and a digest of what decides bytes: a checkout may differ from its release."""
    digests = "".join(f"{name} {sha256_of(path)}\n" for name, path in files())
    return f"{__version__} sha256:{sha256(digests)}"


def files() -> tuple[tuple[str, Path], ...]:
    """Return every file of the list, sorted, with its path in the repository and where it is here."""
    table = toml.loads(LIST.read_text(encoding="utf-8"))
    left_out = frozenset(table["exclude"])
    found = (pair for entry in table["include"] for pair in _below(entry, resources.place(entry)))
    return tuple(sorted((name, path) for name, path in found if name not in left_out))


def _below(name: str, path: Path) -> Iterator[tuple[str, Path]]:
    if path.is_file():
        yield name, path
        return
    for inner in path.rglob("*"):
        relative = PurePosixPath(inner.relative_to(path).as_posix())
        if inner.suffix != ".pyc" and not any(part.startswith(".") for part in relative.parts) and inner.is_file():
            yield f"{name}/{relative}", inner
