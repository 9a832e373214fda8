"""`builder audit`: judge wheels, and folders in hub layout."""

from dataclasses import replace
from pathlib import Path

import click

from builder import json_text, terminal
from builder import kernel as kernels
from builder.audit import gpus, hub_layout
from builder.audit.limited import Judged, run_limited
from builder.audit.report import AuditReport
from builder.cli.arguments import PATH, kernel_option
from builder.errors import AuditError, BuilderError
from builder.kernel import CONFIG
from builder.metadata import METADATA_FILE
from builder.publish import signature
from builder.wheel.archive import WheelError
from builder.wording import escaped


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="WHEEL|FOLDER...", type=PATH)
@kernel_option("Kernel's directory, to compare a hub layout with. Default: the parent folder, if it is a kernel.")
@click.option("--complete", is_flag=True, help="Refuse a hub layout that lacks a variant of the release.")
@click.option(
    "--signed-by", metavar="IDENTITY", help="Refuse a variant that this workflow or mail address did not sign."
)
@click.option(
    "--issuer", default=signature.GITHUB, show_default=True, metavar="URL", help="Issuer that vouches for the signer."
)
@click.option("--trust-config", type=PATH, help="Verify with this instance of sigstore.")
@click.option("--gpus", "show_gpus", is_flag=True, help="Show the code that each GPU would run.")
@click.option(
    "--require-gpus",
    metavar="GPU,...",
    help="Refuse a wheel that lacks code for one of these GPUs, such as H100,9.0 or gfx942.",
)
@click.option("--sizes", is_flag=True, help="Show what takes the bytes of the wheel, by architecture.")
@click.option(
    "--resources", is_flag=True, help="Show the registers, memory, spills and occupancy of each function on GPUs."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    paths: tuple[Path, ...],
    *,
    kernel: Path | None,
    complete: bool,
    signed_by: str | None,
    issuer: str,
    trust_config: Path | None,
    show_gpus: bool,
    require_gpus: str | None,
    sizes: bool,
    resources: bool,
    as_json: bool,
) -> int:
    """Check wheels, and folders in hub layout: ABI, layout, architectures."""
    required = tuple(gpus.named(name) for name in (require_gpus or "").split(",") if name.strip())
    signer, verify = _signer(paths, signed_by, issuer, trust_config)
    judged: list[Judged] = []
    unreadable: list[WheelError] = []
    layouts = [(path, _layout(path)) for path in paths]
    for path, layout in layouts:
        # The variants of a layout are judged one by one, like the named wheels.
        for artifact in (path,) if layout is None else hub_layout.variants(layout):
            try:
                each = run_limited(artifact, sizes=sizes, with_resources=resources)
                signed = signature.check(artifact, signer, verify) if hub_layout.is_folder(artifact) else ()
            except WheelError as error:
                unreadable.append(error)
                continue
            found = [*each.report.findings, *signed]
            if required:
                found = [*{*found, *gpus.missing(required, each.gpus, each.report.wheel)}]
            rules = (*each.report.rules, *((signature.RULE,) if signer else ()))
            report = replace(each.report, rules=rules, findings=tuple(sorted(found)))
            judged.append(replace(each, report=report))
    whole = (layout for _, layout in layouts if layout is not None)
    judged += [Judged(report=_check(layout, kernel, complete=complete)) for layout in whole]
    _show(judged, show_gpus=show_gpus, as_json=as_json)
    if unreadable:
        raise WheelError("\nerror: ".join(map(str, unreadable)))
    return 0 if all(each.report.ok for each in judged) else AuditError.exit_code


def _signer(
    paths: tuple[Path, ...], signed_by: str | None, issuer: str, trust_config: Path | None
) -> tuple[signature.Signer | None, signature.Verify | None]:
    """Return the required signer, and the verifier."""
    if signed_by is None:
        return None, None
    wheels = [path for path in paths if not hub_layout.is_folder(path)]
    if wheels:
        raise BuilderError(f"'{wheels[0]}' is not a variant of a hub layout, but --signed-by checks only such variants")
    return signature.Signer(identity=signed_by, issuer=issuer), signature.verifier(trust_config)


def _layout(path: Path) -> Path | None:
    """Return the folder with the variants: `path` itself, or a folder in it; None if `path` is no layout."""
    if not hub_layout.is_folder(path) or (path / METADATA_FILE).exists():
        return None
    inner = path / "build"
    return inner if inner.is_dir() and not hub_layout.variants(path) else path


def _check(layout: Path, kernel: Path | None, *, complete: bool) -> AuditReport:
    """Judge a layout as a whole, with the config of its kernel if one is given."""
    above = layout.absolute().parent
    folder = above if kernel is None and (above / CONFIG).is_file() else kernel
    if complete and folder is None:
        raise BuilderError(f"nothing says which variants '{layout}' must have", help="name the kernel with --kernel")
    return hub_layout.check(layout, kernel=None if folder is None else kernels.load(folder), complete=complete)


def _show(judged: list[Judged], *, show_gpus: bool, as_json: bool) -> None:
    if as_json:
        reports = [
            {
                **each.report.to_dict(),
                "gpus": [code.to_dict() for code in each.gpus],
                **({} if each.sizes is None else {"sizes": each.sizes.to_dict()}),
                **({} if each.resources is None else {"resources": each.resources.to_dict()}),
            }
            for each in judged
        ]
        terminal.document(json_text.document({"wheels": reports}))
        return
    for each in judged:
        terminal.out(each.report.to_text(), end="")
        if show_gpus:
            _show_gpus(each)
        if each.sizes is not None:
            terminal.out(f"{each.report.wheel}: {each.sizes.text}", end="")
        if each.resources is not None:
            terminal.out(f"{each.report.wheel}: {each.resources.text}", end="")


def _show_gpus(judged: Judged) -> None:
    """Show the code that each GPU runs, on a line each."""
    if not judged.gpus:
        terminal.out(f"{judged.report.wheel}: no device code is needed")
        return
    terminal.out(f"{judged.report.wheel}: what each GPU runs")
    names = {code: ", ".join(code.gpu.names) for code in judged.gpus}
    width = max(map(len, names.values()))
    for code in judged.gpus:
        terminal.out(f"  {code.gpu.arch:8} {names[code]:{width}}  {escaped(code.text)}")
