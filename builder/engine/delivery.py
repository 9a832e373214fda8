"""A wheel of the store is written to the output folder, whole or not at all."""

from pathlib import Path

from builder.engine.outcome import CellOutcome, Status
from builder.errors import ToolError
from builder.files import drop_unfinished, write_atomic
from builder.hashes import sha256
from builder.make import wheel_record as records
from builder.make.report import BuildReport
from builder.matrix import Cell
from builder.store import StoredWheel


def deliver(
    cell: Cell, entry: StoredWheel, content: bytes, *, output: Path, status: Status, reason: str
) -> CellOutcome:
    """Write a wheel to the folder `output` and return the outcome of its cell.

    Another build may write a wheel of the same name at once, of the same kernel with other sources: the last one stays.

    Raises:
        ToolError: the content is not that of the entry, or it cannot be written.
    """
    if sha256(content) != entry.sha256:
        raise ToolError(f"'{entry.wheel}' changed while it was read", help="check the disk, and build again")
    target = output / entry.wheel.name
    report = BuildReport.from_json(entry.report)
    try:
        drop_unfinished(target)
        write_atomic(target, content)
        records.write(target, sha256=entry.sha256, variant=cell.variant, report=report)
    except OSError as error:
        raise ToolError(
            f"cannot write '{target}': {error.strerror}",
            help="the wheel is in the store; free the disk or name another folder with --output, and build again",
        ) from error
    return CellOutcome(cell=cell, status=status, wheel=target, sha256=entry.sha256, reason=reason, report=report)
