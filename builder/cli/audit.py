"""`builder audit`: judge wheels."""

import json
from pathlib import Path

import click

from builder import terminal
from builder.audit import AuditReport
from builder.audit.limited import run_limited
from builder.errors import AuditError
from builder.wheel.archive import WheelError


@click.command()
@click.argument("wheels", nargs=-1, required=True, metavar="WHEEL...", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(wheels: tuple[Path, ...], *, as_json: bool) -> int:
    """Check wheels: ABI, layout, architectures."""
    reports: list[AuditReport] = []
    unreadable: list[WheelError] = []
    for path in wheels:
        try:
            reports.append(run_limited(path))
        except WheelError as error:  # noqa: PERF203  the others are judged all the same
            unreadable.append(error)
    _show(reports, as_json=as_json)
    if unreadable:
        raise WheelError("\nerror: ".join(map(str, unreadable)))
    return 0 if all(report.ok for report in reports) else AuditError.exit_code


def _show(reports: list[AuditReport], *, as_json: bool) -> None:
    if as_json:
        terminal.document(json.dumps({"wheels": [report.to_dict() for report in reports]}, indent=2), end="\n")
        return
    for report in reports:
        terminal.out(report.to_text(), end="")
