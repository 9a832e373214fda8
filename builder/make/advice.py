"""Say what to do about compile errors whose cause is known: code for another torch, or for newer GPUs."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from builder import resources, toml
from builder.config.values import Version
from builder.matrix import architectures, rows
from builder.wording import listed

_NEEDS = re.compile(r"ptxas .*error\s*:.*?'(?P<what>[^']+)'.* requires \.target sm_(?P<major>\d+)(?P<minor>\d)\b")
_REFUSED = re.compile(
    r"ptxas .*error\s*:.*?'(?P<what>[^']+)' not supported on \.target 'sm_(?P<major>\d+)(?P<minor>\d)'"
)
_SOURCE = re.compile(r"FAILED: (?:\[code=\d+\] )?\S*?\.dir/(?P<source>\S+)\.o\b")
_SHOWN = 3


def of_torch(lines: Sequence[str], among: Sequence[Version] | None = None) -> str | None:
    """Return what takes the place of the first thing in these lines that torch no longer has; None where none is.

    `among` are the versions of torch that can be built for; by default those of the matrix.
    """
    for line in lines:
        for entry in _removed():
            if re.search(entry["said"], line):
                gone = f"torch {entry['gone-in']} and later are without {entry['what']}"
                known = [row.torch for row in rows()] if among is None else among
                older = [version for version in known if version < Version(entry["gone-in"])]
                if older:
                    build = f"build for the newest torch that has it: --set all --torch {max(older)}"
                    return f"{gone}: write {entry['instead']}, or {build}"
                return f"{gone}, and no torch of the matrix is older: write {entry['instead']}"
    return None


def of_ptxas(lines: Sequence[str], toolkit: str | None) -> tuple[str, str] | None:
    """Return the capability that code needs, once for all the lines of ptxas, and what to write; None without these."""
    needs, refused = ([match for match in map(each.search, lines) if match] for each in (_NEEDS, _REFUSED))
    if not needs and not refused:
        return None
    found = needs or refused
    capability = max(Version(f"{match['major']}.{match['minor']}") for match in found)
    whats = list(dict.fromkeys(match["what"] for match in found))
    sources = dict.fromkeys(match["source"] for match in map(_SOURCE.search, lines) if match is not None)
    where = f"{', '.join(sources)}: " if sources else ""
    said = listed(whats[:_SHOWN]) + (f" and {len(whats) - _SHOWN} more" if whats[_SHOWN:] else "")
    if needs:
        compiled = () if toolkit is None else architectures.cuda(None, Version(toolkit)).compiled
        works = [name for name in compiled if Version(name.removesuffix("+PTX")) >= capability] or [str(capability)]
        text = f"{said} needs capability {capability} or higher"
    else:
        works = [f"{capability}a"]
        text = f"{said} is not in code for {capability}, which later GPUs run, too"
    return (
        f"{where}{text} ({len(found)} line{'s' * (len(found) > 1)} of ptxas)",
        f"write cuda-capabilities = {toml.spelled(works)} in the component",
    )


@cache
def _removed() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = toml.loads((resources.DATA / "removed.toml").read_text(encoding="utf-8"))["removed"]
    return found
