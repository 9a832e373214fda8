"""The Nix engine: build the same cells as derivations, with the same code in Nix's sandbox."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from builder import json_text, resources, toolchain
from builder.config import LoadTestRule
from builder.engine.nix_command import HOST, LIBRARY, NIXPKGS, LogLine, Nix, NixError, NixLog
from builder.engine.outcome import CellOutcome, Event, Listen, Status, for_kernel
from builder.environment import indexes, locked_kernels
from builder.environment.download import Fetching
from builder.errors import AuditError, BuilderError, NotHereError, ToolError
from builder.files import write_atomic
from builder.hashes import sha256, sha256_of
from builder.loadtest.packages import depended
from builder.make import kernel_lock
from builder.make import wheel_record as records
from builder.make.build_report import BuildReport
from builder.make.derivation import RECORD
from builder.matrix import Cell, coverage
from builder.plan import crossing
from builder.plan.ask import KernelBuild
from builder.run import Completed, Processes
from builder.store import COMPILERS

_SHOWN = 20
_ATTEMPTS = 3
"""The number of times that a build is tried if remote builders are lost."""


class BuildError(ToolError):
    """The build of a cell failed in Nix."""


class RuleError(AuditError):
    """A wheel that Nix built breaks a rule, or does not load."""


def build(builds: Sequence[KernelBuild], listen: Listen) -> tuple[CellOutcome, ...]:
    """Build cells of kernels with Nix, one kernel after the other, and return the outcome of each, in their order."""
    outcomes: list[CellOutcome] = []
    for each in builds:
        ask, processes = each.ask, Processes()
        ask.store.prepare()
        try:
            nix = Nix.find(
                ask.environ,
                processes=processes,
                package_set=ask.package_set,
                sandboxed=not ask.allow_unsandboxed,
            )
            outcomes += _Run(build=each, listen=for_kernel(listen, each.shown), nix=nix).outcomes()
        except BaseException:
            processes.cancel()
            raise
    return tuple(outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _CellDerivation:
    """The derivation of a cell."""

    cell: Cell
    drv: str = ""
    out: Path = Path()
    missing: str | None = None
    wheels: tuple[Mapping[str, str], ...] = ()
    kernels: tuple[Mapping[str, str], ...] = ()
    """The locked kernels, each with its digest and its path in Nix's store."""
    compilers: Path | None = None
    """The path of the pinned compilers in Nix's store; None to use those of the package set."""

    @classmethod
    def of(cls, cell: Cell, found: Mapping[str, Any]) -> "_CellDerivation":
        """Parse a cell's plan from `engine.nix`."""
        if "missing" in found:
            return cls(cell=cell, missing=found["missing"])
        return cls(
            cell=cell,
            drv=found["drv"],
            out=Path(found["out"]),
            wheels=tuple(found["wheels"]),
            kernels=tuple(found["kernels"]),
            compilers=None if found["compilers"] is None else Path(found["compilers"]),
        )


@dataclass(slots=True, kw_only=True)
class _Run:
    """One call of the engine."""

    build: KernelBuild
    listen: Listen
    nix: Nix
    locked: bool = True
    """Whether load tests have the locked kernels."""
    began: float = field(default_factory=time.monotonic)
    lines: dict[str, list[str]] = field(default_factory=dict)
    ends: dict[str, float] = field(default_factory=dict)

    FAILURES: ClassVar[Mapping[int, type[BuilderError]]] = {5: RuleError}

    def outcomes(self) -> Iterator[CellOutcome]:
        """Plan, add local wheels to Nix's store, build, and yield the outcome of each cell."""
        cells = self.build.cells
        settled = {cell: outcome for cell in cells if (outcome := self._settled(cell)) is not None}
        mine = tuple(cell for cell in cells if cell not in settled)
        self._tell(mine, "evaluating")
        plans, refused = self._plan_with_kernels(mine)
        buildable = tuple(plan for plan in plans if plan.missing is None)
        self._add_files(buildable)
        self._add_compilers(buildable)
        log = self._build(buildable) if buildable else NixLog()
        found = {plan.cell: self._outcome(plan, log) for plan in plans} | settled | dict(refused)
        for cell in cells:
            outcome = replace(found[cell], kernel=self.build.shown)
            self.listen(Event(variant=cell.variant, kind="done", outcome=outcome))
            yield outcome

    def _plan_with_kernels(
        self, cells: Sequence[Cell]
    ) -> tuple[tuple[_CellDerivation, ...], Mapping[Cell, CellOutcome]]:
        """Plan cells with their locked kernels; if these are not available, the cells that load them fail."""
        kernel, rule = self.build.kernel, self.build.ask.load_test_of(self.build.kernel)
        loading = [cell for cell in cells if depended(kernel, cell.backend) and rule is not LoadTestRule.SKIP]
        refusal = _refusal(lambda: kernel_lock.read(kernel.root)) if loading else None
        plans = self._plan(cells, locked=refusal is None)
        if refusal is None:
            refusal = _refusal(lambda: self._bring_kernels(plans))
            plans = plans if refusal is None else self._plan(cells, locked=False)
        if refusal is None:
            return plans, {}
        if rule is LoadTestRule.TRY:
            self._tell(loading, refusal.message.splitlines()[0])
            return plans, {}
        failed = CellOutcome(cell=cells[0], status="failed", reason=refusal.message, error=refusal)
        return tuple(plan for plan in plans if plan.cell not in loading), {
            cell: replace(failed, cell=cell) for cell in loading
        }

    def _bring_kernels(self, plans: Sequence[_CellDerivation]) -> None:
        """Add the locked kernels to Nix's store."""
        users = [plan.cell for plan in plans if plan.kernels]
        wanted = {each["digest"]: Path(each["out"]) for plan in plans for each in plan.kernels}
        if wanted:
            ask = self.build.ask
            fetching = Fetching(
                store=ask.store,
                environ=ask.environ,
                progress=lambda text: self._tell(users, text),
                processes=self.nix.processes,
            )
            keeper = locked_kernels.keeper(fetching)
            locked_kernels.bring_to_nix(self.build.kernel, wanted, keeper=keeper, add=self.nix.add_folder)

    def _tell(self, cells: Iterable[Cell], text: str, *, kind: Literal["step", "note"] = "step") -> None:
        for cell in cells:
            self.listen(Event(variant=cell.variant, kind=kind, text=text))

    def _request(self, cells: Sequence[Cell]) -> str:
        """Return the argument of `engine.nix`."""
        table = {
            "kernel": str(self.build.kernel.root.resolve()),
            "lock": str(resources.TEMPLATES.parent / "flake.lock"),
            "set": self.nix.package_set if self.nix.package_set in (HOST, NIXPKGS) else _folder(self.nix.package_set),
            "settings": _settings(self.nix.package_set),
            "system": toolchain.system(),
            "others": sorted({cell.system for cell in cells if toolchain.crosses(cell)}),
            # Defaults are omitted, so that the derivation equals the flake's.
            "options": self.build.ask.of_build.to_json(),
            "variants": [cell.variant for cell in cells],
            "per-file": self.build.ask.per_file,
            "locked": self.locked,
            "pinned-compilers": bool(self.build.ask.compilers),
        }
        return json_text.canonical(table)

    def _plan(self, cells: Sequence[Cell], *, locked: bool) -> tuple[_CellDerivation, ...]:
        self.locked = locked
        if not cells:
            return ()
        answer: dict[str, Any] = self.nix.evaluate("plan", self._request(cells))
        return tuple(_CellDerivation.of(cell, answer[cell.variant]) for cell in cells)

    def _add_files(self, plans: Sequence[_CellDerivation]) -> None:
        """Add pinned wheels from find-links folders to Nix's store; skip a file with another hash."""
        folders = indexes.read(self.build.ask.environ).folders
        wanted = {wheel["file"]: wheel for plan in plans for wheel in plan.wheels}
        for file, wheel in sorted(wanted.items()):
            paths = [folder / file for folder in folders if (folder / file).is_file()]
            if not paths or Path(wheel["out"]).exists():
                continue
            good = next((path for path in paths if sha256_of(path) == wheel["sha256"]), None)
            if good is None:
                raise NixError(
                    f"'{paths[0]}' is not the file that was pinned: its sha256 is {sha256_of(paths[0])}, "
                    f"and {wheel['sha256']} is pinned",
                    help="remove the file, or replace it by the published one; nothing was built",
                )
            self._tell((plan.cell for plan in plans), f"adding {file}")
            self.nix.add_file(good)

    def _add_compilers(self, plans: Sequence[_CellDerivation]) -> None:
        """Add the pinned compilers to Nix's store, unless it has them."""
        for place in {plan.compilers for plan in plans if plan.compilers is not None}:
            for folder in self.build.ask.compilers:
                if not place.exists() and place.name.endswith(f"-{folder.name}"):
                    self._tell((plan.cell for plan in plans), "adding the pinned compilers")
                    with self.build.ask.store.use(f"{COMPILERS}-{folder.name}"):
                        self.nix.add_folder(folder)

    def _build(self, plans: Sequence[_CellDerivation]) -> NixLog:
        """Build; if a remote builder is lost, build the rest on the others and keep the finished derivations."""
        for _ in range(_ATTEMPTS - 1):
            log, done = self._attempt(plans)
            if done.returncode == 0 or not log.lost:
                break
            text = "a builder of Nix was lost: what it had not finished is built again"
            self._tell((plan.cell for plan in plans), text, kind="note")
        else:
            log, done = self._attempt(plans)
        if done.returncode != 0 and not log.errors:
            raise self.nix.explain(done.output)
        return log

    def _attempt(self, plans: Sequence[_CellDerivation]) -> tuple[NixLog, Completed]:
        cells = {plan.drv: plan.cell for plan in plans}
        log = NixLog()

        def hear(line: str) -> None:
            read = log.take(line)
            if read is not None:
                self._hear(read, cells)

        attributes = tuple(f'cells."{plan.cell.variant}"' for plan in plans)
        done = self.nix.build(attributes, self._request([plan.cell for plan in plans]), on_line=hear)
        for drv, cell in cells.items():
            if drv in self.lines:
                self._log(cell).write_text("".join(f"{line}\n" for line in self.lines[drv]), encoding="utf-8")
        return log, done

    def _hear(self, line: LogLine, cells: Mapping[str, Cell]) -> None:
        cell = None if line.drv is None else cells.get(line.drv)
        if cell is None:
            if line.started:  # a build that cells wait for, such as an environment or a wheel
                self._tell((each for drv, each in cells.items() if drv not in self.lines), f"making {line.text}")
            elif line.drv is not None:
                self.lines.setdefault(line.drv, []).append(line.text)
            return
        lines = self.lines.setdefault(line.drv or "", [])
        self.ends[line.drv or ""] = time.monotonic()
        if line.started:
            self._tell((cell,), "building in Nix's sandbox" if self.nix.sandboxed else "building")
        else:
            lines.append(line.text)
            self.listen(Event(variant=cell.variant, kind="line", text=line.text))

    def _outcome(self, plan: _CellDerivation, log: NixLog) -> CellOutcome:
        if plan.missing is not None:
            error = NixError(f"{plan.cell.variant}: {plan.missing}")
            status: Status = "skipped" if self.build.ask.only_possible else "failed"
            outcome = CellOutcome(cell=plan.cell, status=status, reason=plan.missing, error=error)
        else:
            try:
                if not (plan.out / RECORD).is_file():
                    raise self._failure(plan, log)
                outcome = self._deliver(plan, "built" if plan.drv in log.built else "hit")
            except BuilderError as failure:
                outcome = CellOutcome(cell=plan.cell, status="failed", reason=failure.message, error=failure)
        path = self._log(plan.cell)
        seconds = self.ends.get(plan.drv, time.monotonic()) - self.began
        return replace(outcome, seconds=seconds, log=path if path.is_file() else None)

    def _failure(self, plan: _CellDerivation, log: NixLog) -> BuilderError:
        """Return the message of the failed tool, from the cell's own build or from one that it depends on."""
        lines = self.lines.get(plan.drv, [])
        own = _error_in(lines)
        if own is not None:
            message, _, remedy = own.partition("\n  help: ")
            kind = self.FAILURES.get(log.codes.get(plan.drv, 4), BuildError)
            log_path = self._log(plan.cell)
            return kind(message, help=remedy.replace("/build/log", str(log_path)) or f"the whole log: {log_path}")
        if lines:
            shown = "\n".join(lines[-_SHOWN:])
            return BuildError(
                f"{plan.cell.variant}: the build failed\n{shown}", help=f"the log: {self._log(plan.cell)}"
            )
        said = next(
            (text for drv, found in self.lines.items() if (text := _error_in(found)) and drv in log.codes), None
        )
        if said is not None:
            message, _, remedy = said.partition("\n  help: ")
            return NixError(f"{plan.cell.variant}: {message}", help=remedy or None)
        return self.nix.explain("error: " + "\n".join(log.errors))

    def _deliver(self, plan: _CellDerivation, status: Status) -> CellOutcome:
        record = json_text.read(plan.out / RECORD)
        if self.nix.sandboxed and not record["sandbox"]:
            raise NixError(
                f"{plan.cell.variant} was built outside Nix's sandbox, and a release needs it",
                help=f"set 'sandbox = true' in nix.conf, remove what was built ('nix store delete {plan.out}') and "
                "build again, or pass --allow-unsandboxed",
            )
        source = plan.out / record["wheel"]
        content = source.read_bytes()
        digest = sha256(content)
        target = self.build.ask.output / source.name
        report = BuildReport.from_json({**record["report"], "sandbox": record["sandbox"]})
        report = replace(report, derivation=plan.drv, output=str(plan.out))
        try:
            write_atomic(target, content)
            records.write(target, sha256=digest, variant=plan.cell.variant, report=report)
        except OSError as error:
            raise ToolError(
                f"cannot write '{target}': {error.strerror}",
                help=f"the wheel is at '{source}'; free the disk or name another folder with --output",
            ) from error
        return CellOutcome(
            cell=plan.cell,
            status=status,
            wheel=target,
            sha256=digest,
            reason="nothing changed" if status == "hit" else f"derivation {plan.drv}",
            report=report,
        )

    def _settled(self, cell: Cell) -> CellOutcome | None:
        """Return the outcome of a cell that needs no Nix."""
        try:
            if toolchain.crosses(cell):
                crossing.require_by_nix(cell, self.build.kernel, self.build.ask)
            coverage.require(self.build.kernel.config, cell, self.build.ask.options.only)
        except BuilderError as refusal:
            absent = self.build.ask.only_possible and isinstance(refusal, NotHereError)
            status: Status = "skipped" if absent else "failed"
            return CellOutcome(cell=cell, status=status, reason=refusal.message, error=refusal)
        return None

    def _log(self, cell: Cell) -> Path:
        return self.build.ask.store.log(self.build.name, cell.variant)


def _refusal(action: Callable[[], object]) -> BuilderError | None:
    try:
        action()
    except BuilderError as error:
        return error
    return None


def _error_in(lines: Sequence[str]) -> str | None:
    start = next((index for index, line in enumerate(lines) if line.startswith("error: ")), None)
    return None if start is None else "\n".join(lines[start:]).removeprefix("error: ")


def _folder(text: str) -> str:
    path = Path(text).resolve()
    if not (path / "default.nix").is_file():
        raise NixError(
            f"'{text}' is not a package set: it has no default.nix",
            help=f"name '{NIXPKGS}', '{HOST}', or a folder like '{LIBRARY / HOST}'",
        )
    return str(path)


def _settings(package_set: str) -> dict[str, Any]:
    """Return the settings in which this machine differs from the host package set: the system's Pythons."""
    if package_set != HOST:
        return {}
    found = sorted(Path("/usr/bin").glob("python3.[0-9]*"))
    pythons = {f"cp3{path.name.removeprefix('python3.')}": str(path) for path in found if path.name[9:].isdigit()}
    return {"pythons": pythons} if pythons else {}
