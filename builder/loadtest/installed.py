"""Which installed packages an exception comes from, with their versions."""

import re
from collections.abc import Iterable
from pathlib import Path

_MOST = 3


def raised_in(traceback: str, folders: Iterable[Path]) -> tuple[str, ...]:
    """Return the packages of the last lines of a traceback that are in `folders`, as in `tilelang 0.1.8`.

    The last one raised it. Empty where the last line is of none of them, so that the kernel itself raised it.
    """
    lines = re.findall(r'^ *File "([^"\n]+)", line [0-9]+', traceback, re.MULTILINE)
    found: dict[str, None] = {}
    for file in reversed(lines):
        folder = next((folder for folder in folders if Path(file).is_relative_to(folder)), None)
        name = None if folder is None else _distribution(Path(file).relative_to(folder).as_posix(), folder)
        if name is None:
            break
        found[name] = None
    return tuple(reversed(tuple(found)[:_MOST]))


def _distribution(file: str, folder: Path) -> str | None:
    from importlib import metadata  # noqa: PLC0415  only a load test that failed asks

    for each in metadata.distributions(path=[str(folder)]):
        if any(path.as_posix() == file for path in each.files or ()):
            return f"{each.name} {each.version}"
    return None
