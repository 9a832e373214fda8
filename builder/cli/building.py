"""Run the builds of one kernel or of several, and show what becomes of them."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from builder import json_text, terminal
from builder.cli import builds, selecting, view
from builder.cli import several as several_kernels
from builder.cli.builds import CellRequest, ChosenKernel, ChosenKernels
from builder.cli.several import LoadedKernels, Refusal
from builder.config import ToolchainChoice
from builder.engine import local
from builder.engine.outcome import CellOutcome, Listen, labelled
from builder.errors import BuilderError, ConfigError, NothingToDoError
from builder.kernel import Kernel
from builder.matrix import Cell
from builder.plan import dry_run, size_estimate
from builder.plan.options import KernelBuild, NixOptions, Options
from builder.store import Store
from builder.store.locks import StoppedError

_Build = Callable[[Listen], tuple[CellOutcome, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How a build is run and shown."""

    nix: NixOptions | None
    """What builds, if it is not the local engine."""
    dry_run: bool
    as_json: bool
    report: Path | None
    quiet: bool
    toolchain: ToolchainChoice | None = None
    """The compilers; None for those that each kernel asks for."""


def takes_pinned(kernel: Kernel, asked: ToolchainChoice | None) -> bool:
    """Whether a kernel is compiled by the pinned compilers: as a user asks, or else its config."""
    return (asked or kernel.config.toolchain) is ToolchainChoice.PINNED


def with_compilers(options: Options, cells: Sequence[Cell], *, pinned: bool, quiet: bool = False) -> Options:
    """Return options with the pinned compilers, where these are taken.

    Raises:
        BuilderError: they cannot be had.
    """
    if not pinned:
        return options
    from builder.plan import pinned_compilers  # noqa: PLC0415  only those who ask for them need it

    return pinned_compilers.used(options, cells, (lambda _: None) if quiet else terminal.err)


def _for_gpus(options: Options, only: tuple[str, ...]) -> Options:
    return replace(options, wheel=replace(options.wheel, only=only))


def one(kernel: Kernel, request: CellRequest, options: Options, asked: Asked) -> int:
    """Build one kernel, and return the exit code.

    Raises:
        BuilderError: there is nothing to build, or a tool is missing.
    """
    cells, only = selecting.for_gpus(
        kernel, request.scope, request.archs, variants=request.variants, environ=request.environ
    )
    selecting.say_what_is_built(kernel, cells, only)
    pinned = takes_pinned(kernel, asked.toolchain)
    options = with_compilers(_for_gpus(options, only), cells, pinned=pinned, quiet=asked.quiet)
    _warn_of_sizes(KernelBuild(kernel=kernel, cells=tuple(cells), options=options), asked)
    if asked.dry_run:
        plans = dry_run.preview(kernel, cells, options)
        if asked.as_json:
            terminal.document(json_text.document([plan.to_json() for plan in plans]))
        for plan in () if asked.as_json else plans:
            terminal.out(f"{plan.cell.variant}: {plan.text}")
        return 0

    def build(listen: Listen) -> tuple[CellOutcome, ...]:
        if asked.nix is None:
            return local.build_cells(kernel, cells, options, listen)
        from builder.engine import nix  # noqa: PLC0415  only those who ask for Nix need it

        return nix.build_cells(kernel, cells, options, listen, nix=asked.nix)

    labels = [cell.variant for cell in cells]
    outcomes = _watched(build, asked, title=str(kernel.config.general.name), store=options.store, cells=labels)
    terminal.err(view.summary(outcomes))
    if asked.as_json:
        terminal.document(json_text.document([outcome.to_json() for outcome in outcomes]))
    return _end(outcomes, as_json=asked.as_json)


def several(loaded: LoadedKernels, request: CellRequest, options: Options, asked: Asked, *, keep_going: bool) -> int:
    """Build several kernels under one budget, and return the worst exit code.

    Raises:
        BuilderError: an option is of one kernel, or nothing is asked for.
    """
    if options.unique_id is not None:
        raise BuilderError("--unique-id names the ops of one kernel", help="build that kernel by itself")
    found = builds.choose(loaded, request)
    found = found.without(tuple(_unrenderable(found, options)))
    code = found.say()
    if code and not (keep_going and found.chosen):
        if asked.as_json:
            _write_document({}, found)
        terminal.err("error: nothing was built" + ("; --keep-going builds the others" if found.chosen else ""))
        return code
    pinned = [each for each in found.chosen if takes_pinned(each.kernel, asked.toolchain)]
    cells = [cell for each in pinned for cell in each.cells]
    given = with_compilers(options, cells, pinned=bool(pinned), quiet=asked.quiet)
    mine = tuple(_build_of(each, given if each in pinned else options) for each in found.chosen)
    for each in mine:
        _warn_of_sizes(each, asked)
    if asked.dry_run:
        _preview_several(mine, found, as_json=asked.as_json)
        return code
    labels = [labelled(cell.variant, kernel=one.name) for one in mine for cell in one.cells]
    build = _engine_for_several(mine, asked.nix)
    outcomes = _watched(build, asked, title=f"{len(mine)} kernels", store=options.store, cells=labels)
    terminal.err(view.summary_of_several(outcomes))
    if asked.as_json:
        whose = {one.folder: [each for each in outcomes if each.kernel == one.name] for one in mine}
        _write_document({folder: [each.to_json() for each in them] for folder, them in whose.items()}, found)
    return max(code, _end(outcomes, as_json=asked.as_json))


def _build_of(chosen: ChosenKernel, options: Options) -> KernelBuild:
    selecting.say_what_is_built(chosen.kernel, chosen.cells, chosen.only)
    return KernelBuild(kernel=chosen.kernel, cells=chosen.cells, options=_for_gpus(options, chosen.only))


def _warn_of_sizes(build: KernelBuild, asked: Asked) -> None:
    """Say which wheels will be too large, before anything is compiled; a dry run says it of each cell."""
    if asked.dry_run or build.options.wheel.only:
        return
    for line in size_estimate.warnings(build.options.store, build.kernel, build.cells):
        terminal.err(line)


def _preview_several(mine: Sequence[KernelBuild], found: ChosenKernels, *, as_json: bool) -> None:
    plans = {one.folder: dry_run.preview(one.kernel, one.cells, one.options) for one in mine}
    if as_json:
        _write_document({folder: [plan.to_json() for plan in them] for folder, them in plans.items()}, found)
        return
    for one in mine:
        for plan in plans[one.folder]:
            terminal.out(f"{one.name}:{plan.cell.variant}: {plan.text}")


def _engine_for_several(mine: tuple[KernelBuild, ...], asked: NixOptions | None) -> _Build:
    def build(listen: Listen) -> tuple[CellOutcome, ...]:
        if asked is None:
            return local.build_several(mine, listen)
        from builder.engine import nix  # noqa: PLC0415  only those who ask for Nix need it

        return nix.build_several(mine, listen, nix=asked)

    return build


def _unrenderable(found: ChosenKernels, options: Options) -> Iterator[Refusal]:
    """Yield each kernel that cannot be rendered: what is wrong with a file is known before any compiler runs."""
    from builder import render, toolchain  # noqa: PLC0415  `--help` needs none of it

    for each in found.chosen:
        here = (cell.backend for cell in each.cells if options.crosses or not toolchain.crosses(cell))
        try:
            for backend in dict.fromkeys(here):
                render.render(each.kernel, backend, allow_unsafe_flags=options.allow_unsafe_flags, only=each.only)
        except ConfigError as error:
            yield Refusal(folder=each.kernel.root, error=error)


def _write_document(by_folder: Mapping[str, Any], found: ChosenKernels) -> None:
    errors = several_kernels.texts(found.refusals)
    document = {"kernels": by_folder, "left-out": dict(found.left_out), "errors": errors}
    terminal.document(json_text.document(document))


def run_local(
    kernel: Kernel, cells: Sequence[Cell], options: Options, asked: Asked, *, title: str
) -> tuple[CellOutcome, ...]:
    """Build cells by the local engine while its events are shown, and return the outcome of each."""
    return _watched(
        lambda listen: local.build_cells(kernel, cells, options, listen),
        asked,
        title=title,
        store=options.store,
        cells=[cell.variant for cell in cells],
    )


def _watched(build: _Build, asked: Asked, *, title: str, store: Store, cells: Sequence[str]) -> tuple[CellOutcome, ...]:
    """Build while its events are shown and recorded; `cells` are the labels of all that is to be built."""
    signal.signal(signal.SIGTERM, _interrupt)
    report = None
    if asked.report is not None:
        from builder.cli.reporting import Report  # noqa: PLC0415  only those who ask for a report need it

        report = Report.of(asked.report, by_nix=asked.nix is not None, title=title, store=store)
    measuring = contextlib.nullcontext() if report is None else report.recorder.measuring()
    try:
        with measuring, view.showing(environ=os.environ, quiet=asked.quiet) as show:
            outcomes = build(show if report is None else report.listening(show))
    except KeyboardInterrupt:
        if report is not None:
            report.write_unfinished(cells)
        raise
    if report is not None:
        report.write(outcomes)
    return outcomes


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  signal's signature
    """Treat SIGTERM like Ctrl-C: end the compilers, leave nothing half-written."""
    raise KeyboardInterrupt


def _end(outcomes: tuple[CellOutcome, ...], *, as_json: bool) -> int:
    """Name the wheels, and return the exit code."""
    for outcome in () if as_json else outcomes:
        if outcome.wheel is not None:
            terminal.out(str(outcome.wheel))
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    if failed:
        errors = [outcome.error for outcome in failed if outcome.error is not None]
        return max(error.exit_code for error in errors)
    if any(outcome.status == "stopped" for outcome in outcomes):
        terminal.err("error: stopped by the time limit; the same command goes on from what is finished")
        return StoppedError.exit_code
    if all(outcome.status == "skipped" for outcome in outcomes):
        terminal.err("error: this machine can build none of the cells; each reason is above")
        return NothingToDoError.exit_code
    return 0
