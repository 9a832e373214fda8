"""What an index publishes of a package: the files of one release."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from builder.environment.resolve import UnresolvedError, lock, name_of
from builder.matrix.variant import dotted

_ABSENT = re.compile(
    r"there (?:is|are) no versions? of|only \S+ (?:is|are) available|has no wheels with a matching"
    r"|was not found in the (?:package registry|provided package locations)|only supports [<>=]",
    re.IGNORECASE,
)
_OTHERS = frozenset({"UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"})


class NoReleaseError(UnresolvedError):
    """The index answered, and has no such release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """A file of a release."""

    file: str
    sha256: str
    place: str
    """Where it is: an address, or a path. It may hold a password, so it is never shown."""


def released(
    requirement: str, *, pythons: tuple[str, ...], index: str | None, uv: str, env: Mapping[str, str]
) -> tuple[IndexFile, ...]:
    """Return every file of the newest release that meets a requirement; `pythons` from the oldest on.

    Without an `index` the default one is asked alone, and the user's others only where it has no such release: of
    several that have one, uv names the files of the first.

    Raises:
        NoReleaseError: there is none.
        UnresolvedError: the index did not answer.
    """
    if index is not None:
        return _released(requirement, pythons=pythons, index=index, uv=uv, env=env)
    try:
        alone = {name: value for name, value in env.items() if name not in _OTHERS}
        return _released(requirement, pythons=pythons, index=None, uv=uv, env=alone)
    except UnresolvedError as error:
        try:
            return _released(requirement, pythons=pythons, index=None, uv=uv, env=env)
        except UnresolvedError:
            raise error from None


def _released(
    requirement: str, *, pythons: tuple[str, ...], index: str | None, uv: str, env: Mapping[str, str]
) -> tuple[IndexFile, ...]:
    said = ""
    for python in pythons:  # uv leaves out the files of older Pythons, and refuses releases that lack this one
        options = ("--universal", "--no-deps", "--python-version", dotted(python))
        try:
            packages = lock((requirement,), *options, index=index, uv=uv, env=env)
        except UnresolvedError as error:
            said = error.message
            if _ABSENT.search(" ".join(said.split())) is None:
                raise
            continue
        package = max(packages, key=_order)  # several, where newer Pythons have a newer release
        return tuple(
            IndexFile(file=name_of(wheel), sha256=wheel["hashes"]["sha256"], place=_place(wheel))
            for wheel in package.get("wheels", ())
        )
    raise NoReleaseError(said)


def _order(package: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", package["version"].partition("+")[0]))


def _place(wheel: Mapping[str, str]) -> str:
    address = wheel.get("url")
    if address is None:
        return str(Path(wheel["path"]).resolve())
    return unquote(urlsplit(address).path) if address.startswith("file:") else address
