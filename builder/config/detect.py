"""Detect the schema of a file by its content, so that a mistake in it is reported as one in that schema."""

from collections.abc import Mapping, Sequence
from typing import Any

from builder.config import shape, v5
from builder.config.text import Source

PREVIEW = 6
"""The edition after the current one, whose form may still change."""
_SINCE_4 = ("version", "license", "source")
"""Keys of `[general]` that schema 4 brought; the first two are optional in schema 3."""


def schema(table: Mapping[str, Any], source: Source) -> int:
    """Return the number of the schema that a document is in.

    Raises:
        ConfigError: it names an edition that does not exist.
    """
    general = _tables(table, "general")
    if "edition" in general:
        _check_edition(general["edition"], source)
        return PREVIEW if general["edition"] == PREVIEW else v5.EDITION
    if _is_4(table, general) or not isinstance(table.get("general"), dict):
        return 4
    if "backends" in general:
        return 3
    kernels = [kernel for kernel in _tables(table, "kernel").values() if isinstance(kernel, dict)]
    if any("backend" in kernel for kernel in kernels):
        return 2
    is_old = any("language" in kernel for kernel in kernels) or "universal" in _tables(table, "torch")
    return 1 if is_old or (kernels and _is_plain_1(general, kernels)) else 2


def _is_plain_1(general: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]]) -> bool:
    """Whether components leave the language to its default: in schema 2 each has a backend."""
    from builder.config import v1  # noqa: PLC0415  only a file of an older schema needs it

    known = {item.key for item in shape.fields(v1.Component)}
    return set(general) <= {item.key for item in shape.fields(v1.General)} and all(
        set(kernel) <= known for kernel in kernels
    )


def _is_4(table: Mapping[str, Any], general: Mapping[str, Any]) -> bool:
    return "torch-noarch" in table or "stable-abi" in _tables(table, "torch") or any(key in general for key in _SINCE_4)


def _check_edition(edition: object, source: Source) -> None:
    if not isinstance(edition, int) or isinstance(edition, bool) or edition in {v5.EDITION, PREVIEW}:
        return  # a wrong type is one problem among those of the file
    found = str(edition) if abs(edition) < 10**18 else "a number of many digits"
    if edition > v5.EDITION:
        message = f"edition {found} is newer than {v5.EDITION} and the preview of {PREVIEW}, which this builder reads"
        remedy = "this file needs a newer builder: pip install --upgrade kernel-wheel-builder"
    else:
        message = f"there is no edition {found}: {v5.EDITION} is the first"
        remedy = f"write 'edition = {v5.EDITION}', or remove the line if the file is older"
    raise source.error(source.problem("B004", message, path=("general", "edition"), help=remedy))


def _tables(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key)
    return value if isinstance(value, dict) else {}
