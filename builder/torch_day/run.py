"""From a version to a proposal."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from builder import pins as pinning
from builder import toml
from builder.environment import indexes
from builder.errors import BuilderError, ToolError
from builder.files import write_atomic
from builder.matrix import rules
from builder.torch_day import propose as proposing
from builder.torch_day import read, rows, tables
from builder.torch_day.proposal import Proposal
from builder.torch_day.release import Release, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchDay:
    """A release, and what it changes."""

    release: Release
    proposal: Proposal


def propose(
    version: str | None,
    *,
    data: Path,
    options: rows.RowOptions,
    environ: Mapping[str, str],
    progress: Callable[[str], None],
    record: Path | None = None,
) -> TorchDay:
    """Read a release from the indexes, and return what it changes; without a version the first that is new.

    Raises:
        BuilderError: a data file cannot be read.
        NothingToDoError: no release is new.
        NoTorchError: no such version is published.
        ToolError: an index did not answer, or a wheel cannot be read.
    """
    texts = {name: _text(data / name) for name in proposing.READ}
    pins = pinning.load(data / "pins.toml")
    source = read.Source(
        pins=pins,
        env=indexes.read(environ).env,
        libraries=tuple(json.loads(texts[tables.SHIM])),
        progress=progress,
    )
    known = {str(row.torch) for row in rules.read(texts[rows.NAME])}
    release = read.read(version or read.newer(source, known)[0], source)
    if record is not None:
        write_atomic(record, to_json(release).encode())
    return TorchDay(release=release, proposal=proposing.propose(release, texts, pins, options))


def _text(path: Path) -> str:
    """Return a data file that is well-formed."""
    try:
        text = path.read_text(encoding="utf-8")
        _ = json.loads(text) if path.suffix == ".json" else toml.loads(text)
    except OSError as error:
        raise BuilderError(
            f"cannot read '{path}': {error.strerror}", help="name the folder of data in --data"
        ) from error
    except ValueError as error:  # of JSON, of TOML and of UTF-8
        raise BuilderError(f"'{path}' cannot be read: {error}", help="correct or restore it") from error
    return text


def require_answers(release: Release, *, partial: bool) -> None:
    """Refuse to write what some index was not asked about.

    Raises:
        ToolError: an index did not answer.
    """
    if release.away and not partial:
        count = "an index" if len(release.away) == 1 else f"{len(release.away)} indexes"
        raise ToolError(
            f"{count} did not answer, so rows and pins may be missing",
            help="nothing was written; run it where they can be reached, or write what is known: --partial "
            "(make torch-day TORCH_DAY=--partial)",
        )
