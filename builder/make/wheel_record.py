"""The record next to a wheel: the result of its load test, and how it was built, for readers without the store."""

from pathlib import Path
from typing import Any

from builder import json_text
from builder.files import write_atomic
from builder.loadtest.load_outcome import LoadTest
from builder.make.build_report import BuildReport

SUFFIX = ".record.json"


def path_of(wheel: Path) -> Path:
    """Return the path of a wheel's record."""
    return wheel.with_name(f"{wheel.name}{SUFFIX}")


def write(wheel: Path, *, sha256: str, variant: str, report: BuildReport) -> None:
    """Write a wheel's record next to it, without anything that differs between two builds of the wheel."""
    table = {
        "wheel": wheel.name,
        "sha256": sha256,
        "variant": variant,
        "sandbox": report.sandbox,
        "load-test": report.load_test.to_json(),
    }
    write_atomic(path_of(wheel), json_text.document(table, indent=1, ordered=True).encode())


def read(wheel: Path, *, sha256: str) -> LoadTest | None:
    """Return the result of a wheel's load test; None if its record is missing or belongs to another file."""
    try:
        table = _of(wheel, sha256)
        return None if table is None else LoadTest.from_report(table)
    except (ValueError, AttributeError):
        return None


def sandboxed(wheel: Path, *, sha256: str) -> bool | None:
    """Return whether a wheel was built in a sandbox; None if its record is missing or does not tell."""
    said = (_of(wheel, sha256) or {}).get("sandbox")
    return said if isinstance(said, bool) else None


def _of(wheel: Path, sha256: str) -> dict[str, Any] | None:
    try:
        table = json_text.read(path_of(wheel))
    except (OSError, ValueError):
        return None
    return table if isinstance(table, dict) and table.get("sha256") == sha256 else None
