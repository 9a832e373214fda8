"""What an index publishes of a package: the files of one release."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from builder.environment.resolve import UnresolvedError, lock, name_of
from builder.matrix.variant import dotted

_ABSENT = re.compile(
    r"there (?:is|are) no versions? of|only \S+ (?:is|are) available|has no wheels with a matching"
    r"|was not found in the (?:package registry|provided package locations)|only supports [<>=]",
    re.IGNORECASE,
)


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

    Raises:
        NoReleaseError: there is none.
        UnresolvedError: the index did not answer.
    """
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
    return wheel.get("url") or str(Path(wheel["path"]).resolve())
