"""`builder release`: check, build, audit, bundle and publish a kernel."""

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from builder import kernel as kernels
from builder import lint, sandbox
from builder.audit.limited import run_limited
from builder.cli import building, screen, view
from builder.cli.arguments import (
    AGE,
    FOLDER,
    kernel_argument,
    python_option,
    store_option,
    toolchain_option,
    wheel_version_option,
)
from builder.cli.asking import ask_of, cache_options
from builder.cli.publishing import HUB, HubTarget, Shown, require_release
from builder.cli.selecting import backends_option, sets_option, variants_option
from builder.engine.outcome import CellOutcome
from builder.errors import AuditError, BuilderError, ConfigError, NothingToDoError, PublishError
from builder.kernel import Kernel
from builder.lint.findings import to_text
from builder.plan import choosing, dry_run
from builder.plan.ask import KernelBuild
from builder.plan.dry_run import DryRun
from builder.publish import bundle, card, hub
from builder.wheel import kernel_wheel


@click.command()
@kernel_argument
@click.option("--to", "target", metavar="hub:OWNER/NAME", required=True, help="Repository of the hub.")
@variants_option("Cell to release")
@backends_option
@sets_option
@click.option("--output", type=FOLDER, default=Path("dist"), show_default=True)
@store_option
@click.option("--no-isolation", is_flag=True, help="Build against the torch of the current environment.")
@python_option("Python to build with.")
@wheel_version_option
@cache_options
@toolchain_option
@click.option("--time-limit", type=AGE, help="Stop cleanly before this, such as 5h30m; the next run goes on.")
@click.option("--strict", is_flag=True, help="Refuse a kernel with warnings.")
@click.option("--allow-dirty", is_flag=True, help="Release files that are not committed.")
@click.option("--allow-unsandboxed", is_flag=True, help="Release also what is built without a sandbox.")
@click.option("--endpoint-url", "endpoint", metavar="URL", help="Address of the hub.")
@click.option("--branch", help="Another branch than v<version>.")
@click.option("--replace", is_flag=True, help="Replace variants that are there with other files.")
@click.option("--create-pr", is_flag=True, help="Open a pull request, which needs no write access.")
@click.option("--private", is_flag=True, help="Make a new repository private; refuse an existing public one.")
@click.option("--dry-run", "previews", is_flag=True, help="Show what would be built and sent, and do neither.")
@click.option("--json", "as_json", is_flag=True, help="What was built and sent, as JSON on stdout.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def command(
    kernel: Path,
    *,
    target: str,
    variants: tuple[str, ...],
    strict: bool,
    allow_dirty: bool,
    allow_unsandboxed: bool,
    previews: bool,
    as_json: bool,
    quiet: bool,
    **given: Any,
) -> int:
    """Check a kernel, build and audit its wheels, and publish them on the hub.

    Everything that can be refused is refused before the first file is compiled. A second run continues the first:
    wheels in the store are not built again, and files on the hub are not sent again. Cells that this machine cannot
    build are left out: run the command on another machine for them; both machines add to the same branch.
    """
    if not target.startswith(HUB):
        raise BuilderError(
            f"'{target}' is not a repository of the hub",
            help="write --to hub:OWNER/NAME; for a package index run builder build, index and publish",
        )
    repository = HubTarget.of(target, given)
    ask = ask_of(variants=variants, only_possible=not variants, **given)
    loaded = _checked(kernel, strict=strict)
    commit = _commit(loaded, allow_dirty=allow_dirty)
    build = choosing.build_of(loaded, ask)
    if sandbox.why_unavailable() is not None:
        require_release(("what this machine builds",), {}, allow_unsandboxed=allow_unsandboxed)
    (build,) = building.ready((build,), quiet=quiet)
    planned = _planned(build)
    repository.require(f"v{loaded.config.general.version}")
    shown = Shown(dry_run=previews, as_json=as_json)
    if previews:
        _preview(planned, repository, shown)
        return 0
    outcomes = _built(build, planned, quiet=quiet)
    screen.err(view.summary(outcomes))
    codes = [each.error.exit_code for each in outcomes if each.status != "skipped" and each.error is not None]
    if codes:
        screen.err("error: nothing is published; the same command goes on from what is built")
        return max(codes)
    with tempfile.TemporaryDirectory(prefix="builder-release-") as scratch:
        layout = _laid_out(outcomes, loaded, commit, repository, into=Path(scratch) / "build")
        require_release(layout.unsandboxed, layout.obstacles, allow_unsandboxed=allow_unsandboxed)
        repository.send(layout, shown, cells=[outcome.to_json() for outcome in outcomes])
    return 0


def _checked(folder: Path, *, strict: bool) -> Kernel:
    """Return the kernel, and report the findings of `builder check`."""
    report = lint.inspect(folder)
    report = report.strict() if strict else report
    if report.refused:
        screen.err(to_text(report), end="")
        raise ConfigError(file=report.file, problems=(), rendered=f"'{folder}' is not released as it is")
    return kernels.load(folder)


def _commit(kernel: Kernel, *, allow_dirty: bool) -> bundle.Commit | None:
    """Return the released commit; None outside a checkout."""
    found = bundle.commit_of(kernel.root)
    if found is None:
        screen.err(f"warning: '{kernel.root}' is not in a git checkout, so metadata.json will name no commit")
    elif found.dirty and not allow_dirty:
        raise PublishError(
            f"files of '{kernel.root}' are not committed: nobody could build this release again",
            help="commit them, or pass --allow-dirty",
        )
    return found


def _planned(build: KernelBuild) -> tuple[DryRun, ...]:
    """Return the dry run of each cell."""
    plans = dry_run.preview(build)
    reasons = "\n".join(f"  {plan.cell.variant}: {plan.reason.splitlines()[0]}" for plan in plans)
    refused = [
        plan for plan in plans if plan.action == "refuse" or (plan.action == "skip" and not build.ask.only_possible)
    ]
    if refused:
        raise BuilderError("\n".join(f"{plan.cell.variant}: {plan.reason}" for plan in refused))
    if all(plan.action == "skip" for plan in plans):
        raise NothingToDoError(
            f"this machine can build none of the cells\n{reasons}", help="builder doctor shows what is missing"
        )
    return plans


def _preview(planned: Sequence[DryRun], target: HubTarget, shown: Shown) -> None:
    variants = [plan.cell.variant for plan in planned if plan.action != "skip"]
    if not shown.as_json:
        for plan in planned:
            screen.out(f"{plan.cell.variant}: {plan.text}")
    document = {"cells": [plan.to_json() for plan in planned], "target": target.name, "variants": variants}
    shown.end(f"{target.name}: would get {len(variants)} variants", document)


def _built(build: KernelBuild, planned: Sequence[DryRun], *, quiet: bool) -> tuple[CellOutcome, ...]:
    """Build the cells that this machine can build, or take their wheels from the store."""
    for plan in planned:
        if plan.action == "skip":
            screen.err(f"note: {plan.cell.variant} is left out: {plan.reason.splitlines()[0]}")
    cells = tuple(plan.cell for plan in planned if plan.action != "skip")
    ask = dataclasses.replace(build.ask, only_possible=False)
    return building.run((dataclasses.replace(build, cells=cells, ask=ask),), quiet=quiet)


def _laid_out(
    outcomes: Sequence[CellOutcome], kernel: Kernel, commit: bundle.Commit | None, target: HubTarget, *, into: Path
) -> hub.Layout:
    """Audit the wheels, and lay them out for the hub."""
    wheels = [outcome.wheel for outcome in outcomes if outcome.wheel is not None]
    bad = [report for report in (run_limited(wheel).report for wheel in wheels) if not report.ok]
    if bad:
        raise AuditError("\n".join(report.to_text().rstrip() for report in bad))
    read = kernel_wheel.read_all(wheels)
    tree = bundle.lay_out(read, commit=commit)
    there = target.repository(f"v{kernel.config.general.version}").variants()
    known = tuple(sorted({*tree, *there}))
    filled = card.fill(card.read(kernel.root), read[0], variants=known, repo_id=target.repo_id)
    bundle.write(tree, into, card=filled)
    return hub.read(into)
