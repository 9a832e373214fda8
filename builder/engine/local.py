"""The local engine: pinned environments, the store, and cells side by side under one budget."""

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from builder import (
    __version__,
    build,
    current,
    environment,
    finders,
    identity,
    interpreters,
    pins,
    render,
    toolchain,
    toolkit,
)
from builder.config import Backend, Framework
from builder.engine.budget import Budget, Jobserver, Machine
from builder.engine.outcome import Event, Listen, Outcome, Status
from builder.errors import BuilderError, ConfigError, ToolError
from builder.finish import MANYLINUX
from builder.kernel import Kernel
from builder.matrix import Cell
from builder.run import Processes
from builder.store import Damaged, Entry, Store
from builder.toolchain import Toolchain
from builder.wheel import EPOCH, write_atomic

_NEEDS_TOOLCHAIN = {Backend.CPU, Backend.CUDA, Backend.ROCM, Backend.XPU, Backend.METAL}
_MOST_CELLS = 16
"""Cells that are looked at side by side; how many compile is the budget's business."""


class NotHereError(BuilderError):
    """This machine cannot build a cell; the message says what is missing."""

    exit_code = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user asked of a build."""

    store: Store
    output: Path
    limits: Machine
    environ: Mapping[str, str]
    isolation: bool = True
    python: Path | None = None
    """With isolation the interpreter to prefer; without, the one whose packages are used."""
    wheel_version: str | None = None
    label: bool = True
    policy: str = MANYLINUX
    unique_id: str | None = None
    allow_unsafe_flags: bool = False
    only_possible: bool = False
    """No cell was named: one that this machine cannot build is skipped and does not fail."""
    again: bool = False
    """Build also what the store has."""
    test: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A cell with everything its key is made of."""

    job: build.Job
    record: identity.BuildRecord


def build_cells(kernel: Kernel, cells: Sequence[Cell], options: Options, listen: Listen) -> tuple[Outcome, ...]:
    """Build cells side by side and return what became of each, in their order.

    Ctrl-C ends every compiler, leaves nothing half-written, and is raised again.
    """
    options.store.prepare()
    processes = Processes()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(options.store.scratch())
        worker = _Worker.of(kernel, options, folder=folder, listen=listen, processes=processes)
        stack.callback(worker.jobserver.close)
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=min(_MOST_CELLS, max(1, len(cells)))))
        futures = [pool.submit(worker.run, cell) for cell in cells]
        try:
            _wait(futures)
        except BaseException:
            processes.cancel()
            for future in futures:
                future.cancel()
            raise
    return tuple(future.result() for future in futures)


def _wait(futures: Iterable["Future[Outcome]"]) -> None:
    """Wait for all in short turns: a signal is only seen between two of them."""
    left = set(futures)
    while left:
        done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a cell's framework is, and which Python builds and which loads."""

    prefix: Path | None
    """The environment, when it is one of the store."""
    python: Path
    frontend: Path
    site_packages: Path
    identity: Mapping[str, object]
    pins: str

    @property
    def version(self) -> str:
        """The framework's whole version."""
        return str(self.identity["version"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a build of a cell would do."""

    cell: Cell
    action: Literal["hit", "build", "skip"]
    reason: str
    key: str | None = None
    changes: tuple[identity.Change, ...] = ()

    @property
    def text(self) -> str:
        """The plan in words."""
        words = {"hit": "is in the store", "build": "would be built", "skip": "cannot be built here"}
        return f"{words[self.action]} ({self.reason.splitlines()[0]})"

    def to_json(self) -> dict[str, object]:
        """Return what a machine wants to know."""
        changes = [asdict(change) for change in self.changes]
        return {
            "variant": self.cell.variant,
            "action": self.action,
            "reason": self.reason,
            "key": self.key,
            "changes": changes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worker:
    kernel: Kernel
    options: Options
    listen: Listen
    budget: Budget
    jobserver: Jobserver
    processes: Processes
    known: pins.Pins = field(default_factory=pins.load)

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        options: Options,
        *,
        folder: Path,
        listen: Listen = lambda _: None,
        processes: Processes | None = None,
    ) -> "_Worker":
        """Return a worker with a jobserver in `folder`."""
        return cls(
            kernel=kernel,
            options=options,
            listen=listen,
            budget=Budget(options.limits),
            jobserver=Jobserver(folder, cores=options.limits.cores),
            processes=processes or Processes(),
        )

    def plan(self, cell: Cell) -> Plan:
        """Say what a build of a cell would do."""
        try:
            record = self.prepare(cell).record
        except NotHereError as error:
            return Plan(cell=cell, action="skip", reason=str(error))
        found = self.options.store.find(record.key)
        last = self.options.store.last(self.kernel.config.general.name, cell.variant)
        return Plan(
            cell=cell,
            action="hit" if isinstance(found, Entry) else "build",
            reason=self._why(cell, record, found),
            key=record.key,
            changes=() if last is None else identity.changes(last, record),
        )

    def run(self, cell: Cell) -> Outcome:
        """Bring one cell to its end; a user's error becomes an outcome."""
        began = time.monotonic()
        log = self.options.store.log(self.kernel.config.general.name, cell.variant)
        try:
            outcome = self._run(cell)
        except ConfigError:
            raise
        except BuilderError as error:
            status: Status = "skipped" if self.options.only_possible and isinstance(error, NotHereError) else "failed"
            outcome = Outcome(cell=cell, status=status, reason=error.message, error=error)
        outcome = replace(outcome, seconds=time.monotonic() - began, log=log if log.is_file() else None)
        self.listen(Event(variant=cell.variant, kind="done", outcome=outcome))
        return outcome

    def _run(self, cell: Cell) -> Outcome:
        while True:
            self.step(cell, "preparing")
            prepared = self.prepare(cell)
            environment = prepared.job.environment
            if environment is None:
                return self._finish(cell, prepared)
            with self.options.store.use(f"environment-{environment.name}"):
                if environment.is_dir():  # else it was removed as unused in between: make it again
                    return self._finish(cell, prepared)

    def _finish(self, cell: Cell, prepared: Prepared) -> Outcome:
        store, key = self.options.store, prepared.record.key
        with self._lock(key):
            found = store.find(key)
            reason = self._why(cell, prepared.record, found)
            if isinstance(found, Entry) and not self.options.again:
                self._remember(cell, prepared.record)
                store.touch(key)
                return self._deliver(cell, found, status="hit", reason=reason)
            self.listen(Event(variant=cell.variant, kind="note", text=reason))
            entry = self._build(cell, prepared)
        return self._deliver(cell, entry, status="built", reason=reason)

    @contextlib.contextmanager
    def _lock(self, key: str) -> Iterator[None]:
        try:
            held = self.options.store.lock(key)
        except OSError:
            yield  # a read-only store: nothing in it changes
            return
        with held:
            yield

    def step(self, cell: Cell, text: str) -> None:
        """Say what a cell is at."""
        self.listen(Event(variant=cell.variant, kind="step", text=text))

    def prepare(self, cell: Cell) -> Prepared:
        """Find everything a cell needs, and the key that follows.

        Raises:
            NotHereError: this machine lacks something.
        """
        options = self.options
        if cell.system != toolchain.system() and not cell.noarch:
            raise NotHereError(
                f"{cell.variant} needs a machine of {cell.system}; this one is {toolchain.system()}",
                help=f"build it on {cell.system}, or in CI: builder matrix --system {cell.system} --format github",
            )
        try:
            place = self._isolated(cell) if options.isolation else self._current(cell)
            root = toolkit.cuda_root(place.site_packages) if cell.backend is Backend.CUDA else None
            if root is not None:
                toolkit.complete(root)
            tools = self._toolchain(cell, root)
        except ConfigError:
            raise
        except BuilderError as error:
            raise NotHereError(error.message, help=error.help) from error
        project = render.render(
            self.kernel, cell.backend, unique_id=options.unique_id, allow_unsafe_flags=options.allow_unsafe_flags
        )
        epoch = _epoch(options.environ)
        job = build.Job(
            kernel=self.kernel,
            cell=cell,
            project=project,
            environment=place.prefix,
            site_packages=place.site_packages,
            frontend=place.frontend,
            framework_version=place.version,
            toolchain=tools,
            toolkit_root=root,
            test_python=place.python if options.test else None,
            wheel_version=options.wheel_version,
            label=options.label,
            policy=options.policy,
            epoch=epoch,
            cores=options.limits.cores,
            environ=options.environ,
        )
        record = identity.BuildRecord(
            builder=__version__,
            variant=cell.variant,
            wheel={"version": options.wheel_version or "", "label": str(options.label), "policy": options.policy},
            project=identity.file_digests(project.files),
            framework=place.identity,
            pins=place.pins,
            toolchain={} if tools is None else tools.identity,
            environment={"SOURCE_DATE_EPOCH": str(epoch)},
        )
        return Prepared(job=job, record=record)

    def _isolated(self, cell: Cell) -> _Place:
        """Return the pinned environment of a cell, made now if the store lacks it."""
        requirement = pins.Requirement.of(cell, "")
        where = finders.read(self.options.environ)
        found = interpreters.interpreter_for(self.known, requirement, finders=where)
        wanted = self.known.environment(replace(requirement, python=found.tag))
        made = environment.make(
            wanted,
            store_root=self.options.store.root,
            python=found.path,
            finders=where,
            progress=lambda text: self.step(cell, text),
        )
        return _Place(
            prefix=made.path,
            python=made.python,
            frontend=made.python,
            site_packages=made.site_packages,
            identity=_identity(cell, made.site_packages),
            pins=wanted.digest,
        )

    def _current(self, cell: Cell) -> _Place:
        """Return the environment that is there, if its framework fits the cell."""
        found = current.look(self.options.python)
        name = "tvm_ffi" if cell.framework is Framework.TVM_FFI else "torch"
        site_packages = found.tvm_ffi if cell.framework is Framework.TVM_FFI else found.torch
        if site_packages is None:
            raise NotHereError(
                f"'{found.python}' has no {name}", help=f"install {name} there, or build without --no-isolation"
            )
        place = _Place(
            prefix=None,
            python=found.python,
            frontend=Path(sys.executable),
            site_packages=site_packages,
            identity=_identity(cell, site_packages),
            pins="",
        )
        _fits(cell, place.version)
        return place

    def _toolchain(self, cell: Cell, root: Path | None) -> Toolchain | None:
        if cell.noarch or cell.backend not in _NEEDS_TOOLCHAIN:
            return None
        return toolchain.find(
            cell.backend,
            environ=self.options.environ,
            toolkit=cell.toolkit,
            toolkit_root=root,
            digest=self.options.store.digest,
        )

    def _why(self, cell: Cell, record: identity.BuildRecord, found: Entry | Damaged | None) -> str:
        if isinstance(found, Damaged):
            return f"the entry in the store is damaged and is built again: {found.why}"
        if isinstance(found, Entry):
            return "built again, as asked" if self.options.again else "nothing changed"
        last = self.options.store.last(self.kernel.config.general.name, cell.variant)
        return "first build of this cell" if last is None else identity.summary(last, record)

    def _build(self, cell: Cell, prepared: Prepared) -> Entry:
        options = self.options
        log = options.store.log(self.kernel.config.general.name, cell.variant)
        log.unlink(missing_ok=True)
        with self.budget.admit(cell) as jobs, options.store.scratch() as scratch:
            cores = jobs if jobs < options.limits.cores else None
            job = replace(prepared.job, cores=cores, jobserver=self.jobserver.variables)
            built = build.build(
                job,
                scratch=scratch,
                log=log,
                listen=lambda text: self.listen(Event(variant=cell.variant, kind="line", text=text)),
                processes=self.processes,
            )
        entry = options.store.put(
            prepared.record.key,
            (built.name, built.content),
            record=asdict(prepared.record),
            report={**built.report, "log": str(log)},
        )
        self._remember(cell, prepared.record)
        return entry

    def _remember(self, cell: Cell, record: identity.BuildRecord) -> None:
        with contextlib.suppress(OSError):  # a read-only store remembers nothing
            name = self.kernel.config.general.name
            self.options.store.set_last(name, cell.variant, key=record.key, record=asdict(record))

    def _deliver(self, cell: Cell, entry: Entry, *, status: Status, reason: str) -> Outcome:
        """Copy a stored wheel to the output, whole or not at all."""
        target = self.options.output / entry.wheel.name
        try:
            write_atomic(target, entry.wheel.read_bytes())
        except OSError as error:
            raise ToolError(
                f"cannot write '{target}': {error.strerror}",
                help="the wheel is in the store; free the disk or name another folder with --output, and build again",
            ) from error
        return Outcome(
            cell=cell,
            status=status,
            wheel=target,
            sha256=entry.sha256,
            reason=reason,
            report=entry.report,
        )


def plan(kernel: Kernel, cells: Sequence[Cell], options: Options) -> tuple[Plan, ...]:
    """Say for each cell whether the store has it, or which field changed since its last build; nothing is built."""
    options.store.prepare()
    with options.store.scratch() as folder:
        worker = _Worker.of(kernel, options, folder=folder)
        plans = tuple(worker.plan(cell) for cell in cells)
        worker.jobserver.close()
    return plans


def _identity(cell: Cell, site_packages: Path) -> Mapping[str, object]:
    read = identity.tvm_ffi_identity if cell.framework is Framework.TVM_FFI else identity.torch_identity
    return asdict(read(site_packages))


def _fits(cell: Cell, version: str) -> None:
    """Refuse the torch of the current environment for a cell of another one."""
    if cell.framework is not Framework.TORCH:
        return
    wanted, found = cell.torch, version.partition("+")[0]
    minor = ".".join(found.split(".", 2)[:2])
    exact = cell.stable_abi is None
    if exact and minor != str(wanted):
        raise NotHereError(
            f"{cell.variant} needs torch {wanted}; the current environment has {version}",
            help=f"install torch {wanted}, or build with isolation, or name a cell of torch {minor}",
        )


def _epoch(environ: Mapping[str, str]) -> int:
    text = environ.get("SOURCE_DATE_EPOCH")
    if text is None:
        return EPOCH
    if not text.isascii() or not text.isdigit():
        raise BuilderError(
            f"SOURCE_DATE_EPOCH is '{text}', not a number of seconds", help="unset it, or set it to a whole number"
        )
    return int(text)
