"""Build the cells of one kernel on this machine: take wheels from the store, or compile, test and deliver them."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeGuard

from builder import codec
from builder.engine import why_object
from builder.engine.budget import Budget, Jobserver
from builder.engine.compiled_files import CachedObjectError, CompiledFiles, ServedJob
from builder.engine.outcome import CellOutcome, Event, Listen, Status, for_kernel
from builder.environment.fetch import Reach
from builder.errors import AuditError, BuilderError, ConfigError, NotHereError, ToolError, WrongHashError
from builder.files import drop_unfinished, write_atomic
from builder.hashes import sha256
from builder.loadtest.load_outcome import LoadError
from builder.make import wheel_record as records
from builder.make.build_report import BuildReport, Built
from builder.make.job import CompileError, Job, OutOfMemoryError
from builder.make.ninja_log import File
from builder.make.part import BuildPart
from builder.make.record import BuildRecord, record_of
from builder.make.workplace import Workplace
from builder.matrix import Cell
from builder.plan import dry_run, size_estimate
from builder.plan.ask import Ask, KernelBuild
from builder.plan.planner import Planner
from builder.run import Processes
from builder.store import Damaged, Store, StoredWheel
from builder.store.locks import StoppedError
from builder.wheel.archive import Wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The budget, cache and processes that all cells of a build share, across kernels."""

    budget: Budget
    jobserver: Jobserver
    processes: Processes
    writable: bool
    """Whether the store can be written; otherwise a wheel is delivered but not kept."""
    cache: CompiledFiles
    reach: Reach

    @classmethod
    @contextlib.contextmanager
    def of(cls, ask: Ask) -> Iterator["Shared"]:
        """Open them, with a jobserver in a folder of the store."""
        writable = ask.store.prepare()
        with ask.store.scratch() as folder, contextlib.ExitStack() as stack:
            shared = cls(
                budget=Budget(cores=ask.cores, memory=ask.memory),
                jobserver=Jobserver(folder, cores=ask.cores),
                processes=Processes(),
                writable=writable,
                cache=CompiledFiles.of(ask, writable=writable),
                reach=Reach(),
            )
            stack.callback(shared.jobserver.close)
            stack.callback(shared.cache.close)
            yield shared


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """Builds the cells of one kernel."""

    build: KernelBuild
    listen: Listen
    shared: Shared
    planner: Planner

    @classmethod
    def of(cls, build: KernelBuild, shared: Shared, listen: Listen) -> "Worker":
        """Return a worker that uses the shared resources."""
        tell = for_kernel(listen, build.shown)
        planner = Planner(
            kernel=build.kernel,
            ask=build.ask,
            step=lambda cell, text: tell(Event(variant=cell.variant, kind="step", text=text)),
            processes=shared.processes,
            reach=shared.reach,
            resolves=True,
        )
        return cls(build=build, listen=tell, shared=shared, planner=planner)

    @property
    def ask(self) -> Ask:
        """The options for building the cells."""
        return self.build.ask

    @property
    def store(self) -> Store:
        """The store to take wheels from, and to keep them in."""
        return self.build.ask.store

    @property
    def _timed(self) -> Literal["seconds", "quick-seconds"]:
        """The name of the measured time: a quick build tells nothing about one for all GPUs."""
        return "quick-seconds" if self.ask.options.only else "seconds"

    def _say(self, cell: Cell, kind: Literal["step", "line", "note"], text: str) -> None:
        self.listen(Event(variant=cell.variant, kind=kind, text=text))

    def run(self, cell: Cell) -> CellOutcome:
        """Build one cell, or take it from the store; an error becomes its outcome."""
        began = time.monotonic()
        log = self.store.log(self.build.name, cell.variant)
        try:
            outcome = self._run(cell)
        except ConfigError:
            raise
        except OSError as error:
            where = f"'{error.filename}'" if error.filename else "the store"
            failure = ToolError(
                f"cannot use {where}: {error.strerror or error}",
                help="free the disk or look at its permissions, or name another place with --store or BUILDER_STORE",
            )
            outcome = CellOutcome(cell=cell, status="failed", reason=failure.message, error=failure)
        except BuilderError as error:
            outcome = self._refused(cell, error)
        seconds, kept = time.monotonic() - began, log if log.is_file() else None
        outcome = replace(outcome, seconds=seconds, log=kept, kernel=self.build.shown)
        self.listen(Event(variant=cell.variant, kind="done", outcome=outcome))
        return outcome

    def _refused(self, cell: Cell, error: BuilderError) -> CellOutcome:
        """Return the outcome for an error: stopped, skipped because this machine lacks something, or failed."""
        # A tool that was just ended has not failed by itself, whatever it says; but a wrong file is a failure in any
        # case.
        ended = (
            self.shared.processes.cancelled and isinstance(error, ToolError) and not isinstance(error, WrongHashError)
        )
        if isinstance(error, StoppedError) or ended:
            stopped = error if isinstance(error, StoppedError) else _stopped(cell, self.ask)
            return CellOutcome(cell=cell, status="stopped", reason=stopped.message, error=stopped)
        skipped = self.ask.only_possible and isinstance(error, NotHereError)
        return CellOutcome(cell=cell, status="skipped" if skipped else "failed", reason=error.message, error=error)

    def _run(self, cell: Cell) -> CellOutcome:
        if self.shared.processes.cancelled:
            raise _stopped(cell, self.ask)
        spec = self.planner.spec(cell)
        self._say(cell, "step", "preparing")
        record = self.planner.record(spec)
        if record is not None and not self.ask.again:
            with self._lock(record.key):
                found = dry_run.find(self.store, record.key)
                if self._serves(found):
                    return self._deliver_hit(cell, record, found)
        with self.planner.held(spec) as job:
            part = self.ask.part
            return self._finish(job, record_of(job)) if part is None else self._compile_part(job, part)

    def _serves(self, found: StoredWheel | Damaged | None) -> TypeGuard[StoredWheel]:
        """Whether the store has an entry that passed the requested load test."""
        return isinstance(found, StoredWheel) and BuildReport.from_json(found.report).load_test.answers(
            self.ask.load_test_of(self.build.kernel)
        )

    def _deliver_hit(self, cell: Cell, record: BuildRecord, found: StoredWheel) -> CellOutcome:
        self._remember(cell, record)
        self.store.touch(record.key)
        return self._deliver(cell, found, found.wheel.read_bytes(), status="hit", reason="nothing changed")

    def _finish(self, job: Job, record: BuildRecord) -> CellOutcome:
        cell = job.cell
        with self._lock(record.key):
            found = dry_run.find(self.store, record.key)
            if isinstance(found, StoredWheel) and not self.ask.again:
                tested = found if self._serves(found) else self._test_again(job, found)
                return self._deliver_hit(cell, record, tested)
            reason = dry_run.why(self.build.kernel, self.ask, cell, record=record, found=found)
            self._say(cell, "note", reason)
            entry, content = self._build(job, record)
            return self._deliver(cell, entry, content, status="built", reason=reason)

    def _test_again(self, job: Job, entry: StoredWheel) -> StoredWheel:
        """Load-test a wheel that was stored without a passed load test.

        Raises:
            LoadError: the wheel cannot be imported.
        """
        from builder.make import load  # noqa: PLC0415  half of what there is to import, and a hit needs none

        processes = self.shared.processes
        with self.store.scratch() as scratch:
            place = Workplace(
                job=job,
                scratch=scratch,
                log=scratch / "log",
                listen=lambda text: self._say(job.cell, "step", text),
                processes=processes,
            )
            tested = load.test(place, Wheel.read(entry.wheel), early=None)
        if processes.cancelled:
            raise _stopped(job.cell, self.ask)
        tested.require(self.ask.load_test_of(self.build.kernel))
        report = replace(BuildReport.from_json(entry.report), load_test=tested).to_json()
        if not self.shared.writable:
            return replace(entry, report=report)
        content = (entry.wheel.name, entry.wheel.read_bytes())
        return self.store.put(entry.key, content, record=entry.record, report=report)

    @contextlib.contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        with contextlib.ExitStack() as held:
            if self.shared.writable:  # else the store does not change
                held.enter_context(self.store.lock(key, give_up=lambda: self.shared.processes.cancelled))
            yield

    def _build(self, job: Job, record: BuildRecord) -> tuple[StoredWheel, bytes]:
        cell, store, key, name = job.cell, self.store, record.key, self.build.name
        log = store.log(name, cell.variant)
        try:
            built = self._attempt(job, key, log)
        except OutOfMemoryError as error:
            self._say(cell, "note", f"{error.message.splitlines()[-1]}: built again, alone")
            built = self._attempt(job, key, log, alone=True)
        except CachedObjectError:
            self._say(cell, "note", "what the cache had cannot be linked: built again, without it")
            built = self._attempt(job, key, log, cache=CompiledFiles())
        table, report = codec.encode(record), replace(built.report, log=str(log)).to_json()
        entry = StoredWheel(key=key, wheel=Path(built.name), sha256=sha256(built.content), record=table, report=report)
        if self.shared.writable:
            with contextlib.suppress(PermissionError):  # another user's entry is there: deliver, don't keep
                entry = store.put(key, (built.name, built.content), record=table, report=report)
            self._remember(cell, record)
            why_object.remember(store, name, cell.variant, built)
        return entry, built.content

    def _attempt(
        self, job: Job, key: str, log: Path, *, alone: bool = False, cache: CompiledFiles | None = None
    ) -> Built:
        """Build once; with `alone`, after memory ran out, use one compiler and run no other cell."""
        from builder.make import cell as building  # noqa: PLC0415  half of what there is to import, and a hit needs none

        cell, store, name = job.cell, self.store, self.build.name
        # With a time limit, the compiled files outlive this process.
        resumable = self.shared.writable and (self.ask.time_limit is not None or store.has_partial(key))
        scratch = store.partial(key) if resumable else store.scratch()
        with self._place(job, scratch, log, alone=alone, cache=cache or self.shared.cache) as (place, served):
            # Only a build that shares the cores with those of other cells has a jobserver.
            spare = partial(self.shared.jobserver.spare_core, allowed=bool(place.job.jobserver))
            try:
                built = building.build(place, core=spare)
            finally:
                if not self.ask.options.only:
                    size_estimate.remember(store, self.build.kernel, cell, place.scratch / building.OUT)
            report = served.explained(built.report)
        if job.toolchain is not None:
            seconds = (report.compile_seconds or 0) + (report.finish_seconds or 0)
            store.set_measured(name, cell.variant, self._timed, seconds)
            if not report.cached:  # else its largest file may not have been compiled
                store.set_measured(name, cell.variant, "peak", report.peak_memory or 0)
        return replace(built, report=report)

    def _compile_part(self, job: Job, part: BuildPart) -> CellOutcome:
        """Compile a part of the objects; other parts do not have to wait for it."""
        from builder.make import cell as building  # noqa: PLC0415

        cell = job.cell
        log = self.store.log(self.build.name, f"{cell.variant}-part{part.number}")
        with self._place(job, self.store.scratch(), log, alone=False, cache=self.shared.cache) as (place, served):
            report, mine, of = building.compile_part(place, part)
            report = served.explained(report)
        reason = f"part {part}: {mine} of {of} files"
        return CellOutcome(cell=cell, status="compiled", reason=reason, report=report)

    @contextlib.contextmanager
    def _place(
        self,
        job: Job,
        scratch: contextlib.AbstractContextManager[Path],
        log: Path,
        *,
        alone: bool,
        cache: CompiledFiles,
    ) -> Iterator[tuple[Workplace, ServedJob]]:
        """Wait for memory and cores, and yield the place and the job of a build; check the cache after an error."""
        cell, ask, name = job.cell, self.ask, self.build.name
        admitted = self.shared.budget.admit(cell, alone=alone, learned=self.store.measured(name, cell.variant, "peak"))
        self._say(cell, "step", "waiting for memory and cores")
        with contextlib.ExitStack() as held:
            jobs = held.enter_context(admitted)
            folder = held.enter_context(scratch)
            if self.shared.writable:
                log.unlink(missing_ok=True)
            else:
                log = folder / "log"
            # Memory that limits a cell is a limit of its own, which a jobserver of all cells does not know.
            shares = not alone and jobs == ask.cores
            held.enter_context(
                self.shared.jobserver.hold(1 if shares else jobs, give_up=lambda: self.shared.processes.cancelled)
            )
            if self.shared.processes.cancelled:
                raise _stopped(cell, ask)
            expected = self.store.measured(name, cell.variant, self._timed)
            self.listen(Event(variant=cell.variant, kind="step", text="compiling", expected=expected))
            given = replace(job, cores=jobs, jobserver=self.shared.jobserver.variables if shares else {})
            served = held.enter_context(cache.serve(given, scratch=folder))
            place = Workplace(
                job=served.job,
                scratch=folder,
                log=log,
                listen=lambda text: self.listen(Event(variant=cell.variant, kind="line", text=text)),
                processes=self.shared.processes,
                notes=ask.store,
            )
            try:
                yield place, served
            except (CompileError, AuditError, LoadError) as error:
                if self.shared.processes.cancelled:
                    made = error.files if isinstance(error, CompileError) else ()
                    raise _stopped(cell, ask, made) from None
                raise served.judged(error) from None

    def _remember(self, cell: Cell, record: BuildRecord) -> None:
        with contextlib.suppress(OSError):  # a read-only store cannot remember
            name = dry_run.alike(self.build.kernel, self.ask)
            self.store.set_last(name, cell.variant, key=record.key, record=codec.encode(record))

    def _deliver(self, cell: Cell, entry: StoredWheel, content: bytes, *, status: Status, reason: str) -> CellOutcome:
        """Write a stored wheel to the output folder, whole or not at all, and return the cell's outcome.

        If another build writes a wheel of the same name at the same time, from other sources, the last one wins.

        Raises:
            ToolError: the content does not match the entry, or cannot be written.
        """
        if sha256(content) != entry.sha256:
            raise ToolError(f"'{entry.wheel}' changed while it was read", help="check the disk, and build again")
        target = self.ask.output / entry.wheel.name
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


def _stopped(cell: Cell, ask: Ask, made: tuple[File, ...] = ()) -> StoppedError:
    """Return the error for a stopped cell; its compiled files are kept only under a time limit."""
    kept = "what was compiled is kept; the same command goes on from it" if ask.time_limit is not None else None
    error = StoppedError(f"{cell.variant}: stopped before it was finished", help=kept)
    error.files = made
    return error
