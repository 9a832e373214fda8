"""`builder audit`: judge wheels."""

import json
from dataclasses import replace
from pathlib import Path

import click

from builder import terminal
from builder.audit import gpus
from builder.audit.gpu import Gpu, named
from builder.audit.limited import Judged, run_limited
from builder.errors import AuditError
from builder.wheel.archive import WheelError
from builder.wording import escaped


@click.command()
@click.argument("wheels", nargs=-1, required=True, metavar="WHEEL...", type=click.Path(path_type=Path))
@click.option("--gpus", "show_gpus", is_flag=True, help="Show what each GPU would run of the wheel.")
@click.option(
    "--require-gpus",
    metavar="GPU,...",
    help="Refuse a wheel that lacks code for one of these GPUs, such as H100,9.0 or gfx942.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(wheels: tuple[Path, ...], *, show_gpus: bool, require_gpus: str | None, as_json: bool) -> int:
    """Check wheels: ABI, layout, architectures."""
    required = tuple(named(name) for name in (require_gpus or "").split(",") if name.strip())
    judged: list[Judged] = []
    unreadable: list[WheelError] = []
    for path in wheels:
        try:
            judged.append(_required(run_limited(path), required))
        except WheelError as error:  # noqa: PERF203  the others are judged all the same
            unreadable.append(error)
    _show(judged, show_gpus=show_gpus, as_json=as_json)
    if unreadable:
        raise WheelError("\nerror: ".join(map(str, unreadable)))
    return 0 if all(each.report.ok for each in judged) else AuditError.exit_code


def _required(judged: Judged, required: tuple[Gpu, ...]) -> Judged:
    """Return the same with a finding for each GPU that is required and that the wheel lacks code for."""
    if not required:
        return judged
    report = judged.report
    missing = gpus.missing(required, judged.gpus, report.wheel)
    findings = tuple(sorted((*report.findings, *missing)))
    return replace(judged, report=replace(report, rules=(*report.rules, gpus.RULE), findings=findings))


def _show(judged: list[Judged], *, show_gpus: bool, as_json: bool) -> None:
    if as_json:
        reports = [{**each.report.to_dict(), "gpus": [code.to_dict() for code in each.gpus]} for each in judged]
        terminal.document(json.dumps({"wheels": reports}, indent=2), end="\n")
        return
    for each in judged:
        terminal.out(each.report.to_text(), end="")
        if show_gpus:
            terminal.out(_gpus_text(each), end="")


def _gpus_text(judged: Judged) -> str:
    """Return what each GPU runs, a line for each."""
    if not judged.gpus:
        return f"{judged.report.wheel}: no device code is needed\n"
    names = {code: ", ".join(code.gpu.names) for code in judged.gpus}
    width = max(map(len, names.values()))
    lines = (f"  {code.gpu.arch:8} {names[code]:{width}}  {escaped(code.text)}\n" for code in judged.gpus)
    return f"{judged.report.wheel}: what each GPU runs\n" + "".join(lines)
