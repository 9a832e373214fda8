"""`builder torch-day`: propose the data of a new torch."""

import os
from pathlib import Path

import click

from builder import resources, terminal


@click.command()
@click.argument("version", required=False)
@click.option("--write", is_flag=True, help="Write the data files: all of them or none.")
@click.option("--into", type=click.Choice(["release", "preview"]), default="release", help="The set of the new rows.")
@click.option("--drop", multiple=True, metavar="TORCH", help="Move the rows of a torch to the legacy set; repeatable.")
@click.option("--partial", is_flag=True, help="Write even if an index does not answer; existing rows stay.")
@click.option("--over-edits", is_flag=True, help="Write over local edits of the data files.")
@click.option("--record", type=click.Path(path_type=Path), help="Also write what was read as JSON, for tests.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=resources.DATA,
    help="The data files.",
)
def command(
    *,
    version: str | None,
    write: bool,
    into: str,
    drop: tuple[str, ...],
    partial: bool,
    over_edits: bool,
    record: Path | None,
    data: Path,
) -> None:
    """Propose rows, pins and tables of a new torch, read from its published wheels.

    Shows a diff, the source of each new line, and what a person has to look at. VERSION is `2.15` or `2.15.0`. Without
    VERSION, the command reads the oldest torch that is newer than the matrix, or a new patch release of the newest
    torch in the matrix.
    """
    from builder import torch_day  # noqa: PLC0415  `--help` needs none of it
    from builder.torch_day import proposal  # noqa: PLC0415
    from builder.torch_day.rows import RowOptions  # noqa: PLC0415

    release, proposed = torch_day.propose(
        version,
        data=data,
        options=RowOptions(into=into, drop=drop),
        environ=os.environ,
        progress=terminal.err,
        record=record,
    )
    terminal.document(proposed.diff(proposal.folder_in_checkout(data)))
    for note in proposed.notes:
        terminal.err(f"look at: {note}")
    for reason in release.away:
        terminal.err(f"did not answer: {reason}")
    if not proposed.edits:
        terminal.err(f"nothing to change for torch {release.version}")
    elif write:
        if not over_edits:
            proposal.require_unedited(data, tuple(edit.name for edit in proposed.edits))
        torch_day.require_answers(release, partial=partial)
        proposal.write(proposed, data)
        terminal.err(f"wrote {', '.join(edit.name for edit in proposed.edits)}")
