"""The cells that this machine can build, and the tools that it lacks for the others; nothing is fetched."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder import pins, toolchain
from builder.config import Backend, Framework
from builder.environment import indexes, interpreters
from builder.errors import BuilderError, ConfigError, NotHereError
from builder.make.job import NotLoadable, loader_of
from builder.matrix import Cell, Row
from builder.matrix.variant import dotted
from builder.plan import crossing
from builder.plan.ask import KernelBuild
from builder.plan.planner import Planner
from builder.toolchain import emulator, this_machine
from builder.toolchain.tool import Search


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSupport:
    """Whether a row of the matrix can be built here; `missing` says what it lacks."""

    row: Row
    missing: str | None
    help: str | None = None
    how: str = ""
    """The differences to other builds: the option that asks for it, and that its wheel is not loaded."""

    @property
    def variant(self) -> str:
        """The classic torch cell of the row."""
        return self.row.variant or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSupport:
    """Whether a cell of a kernel can be built here; `missing` says what it lacks."""

    cell: Cell
    missing: str | None
    help: str | None = None
    how: str = ""
    """The differences to other builds: the option that asks for it, and that its wheel is not loaded."""

    @property
    def variant(self) -> str:
        """The cell's name."""
        return self.cell.variant


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """The tools and Pythons of this machine; each is looked for once."""

    environ: Mapping[str, str]
    finders: indexes.Finders
    known: pins.Pins = field(default_factory=pins.load)
    _tools: dict[tuple[Backend, str | None, str | None], BuilderError | None] = field(default_factory=dict)
    _pythons: dict[str, Path | None] = field(default_factory=dict)

    def support(self, row: Row) -> RowSupport:
        """Return whether a row can be built here."""
        crosses = row.system != toolchain.system()
        elsewhere = _elsewhere(row.system)
        if crosses and not crossing.possible(row.backend, row.system):
            return RowSupport(row=row, missing=_no_machine(row.system), help=elsewhere)
        try:
            pinned, loaded = self._environment(row)
        except BuilderError as error:
            return RowSupport(row=row, missing=error.message, help=error.help)
        # A toolkit among the pins is made when it is needed.
        brings = any(wheel.name == crossing.NVCC for wheel in pinned.wheels)
        if crosses and row.backend is Backend.CUDA and not brings:
            return RowSupport(row=row, missing=f"no CUDA {row.toolkit} for {row.system}", help=elsewhere)
        tool = (Backend.CPU, None) if brings else (row.backend, row.toolkit)
        target = row.system if crosses else None
        problem = self.missing_tool(*tool, target) or self._refused_by_nvcc(row, target)
        if problem is not None:
            remedy = f"{problem.help}; or {elsewhere}" if crosses else problem.help
            return RowSupport(row=row, missing=problem.message, help=remedy)
        return RowSupport(row=row, missing=None, how=self._how(row, pinned, crosses=crosses, loaded=loaded))

    def _refused_by_nvcc(self, row: Row, target: str | None) -> BuilderError | None:
        """Return why nvcc takes no compiler that is here; None where it does."""
        if row.backend is not Backend.CUDA or row.toolkit is None:
            return None
        try:
            this_machine.require_for_nvcc(Search(environ=self.environ, digest=_no_digest), row.toolkit, target=target)
        except NotHereError as error:
            return error
        return None

    def _environment(self, row: Row) -> tuple[pins.PinSet, bool]:
        """Return the wheels of a row, and whether its torch is for a Python that is here."""
        wanted = pins.Requirement(
            framework=Framework.TORCH, version=str(row.torch), compute=row.compute, python="", system=row.system
        )
        try:
            found = interpreters.interpreter_for(self.known, wanted, finders=self.finders, search=self._python)
        except interpreters.NoPythonError:
            at_hand = interpreters.at_hand(None)
            if at_hand is None:
                raise
            return self.known.environment(replace(wanted, python=at_hand.tag), any_python=True), False
        return self.known.environment(replace(wanted, python=found.tag)), True

    def _how(self, row: Row, pinned: pins.PinSet, *, crosses: bool, loaded: bool) -> str:
        pythons = (*pinned.other_pythons, pinned.python)
        if crosses:
            search = Search(environ=self.environ, digest=_no_digest)
            with contextlib.suppress(NotHereError):
                emulator.find(search, row.system, python=pythons[0])
                return f"with --system {row.system}"
            return f"with --system {row.system}, and are not loaded"
        python = dotted(pythons[0])
        return "" if loaded else f"and are not loaded, for lack of Python {python} (uv python install {python})"

    def _python(self, tag: str) -> Path | None:
        if tag not in self._pythons:
            self._pythons[tag] = interpreters.find(tag, finders=self.finders)
        return self._pythons[tag]

    def missing_tool(self, backend: Backend, toolkit: str | None, target: str | None) -> BuilderError | None:
        """Return why the tools of a backend are not here; None where they are."""
        key = backend, toolkit, target
        if key not in self._tools:
            self._tools[key] = None
            try:
                toolchain.find(backend, environ=self.environ, toolkit=toolkit, digest=_no_digest, target=target)
            except BuilderError as error:
                self._tools[key] = error
        return self._tools[key]


def _elsewhere(system: str) -> str:
    return f"build it there, or in CI: builder matrix --system {system} --format github"


def _no_machine(system: str) -> str:
    return f"no machine of {system}"


def _no_digest(path: Path) -> str:
    """Return a placeholder: digests are for build keys."""
    return path.name


def row_support(rows: Sequence[Row], environ: Mapping[str, str]) -> Iterator[RowSupport]:
    """Yield for each row whether a classic torch cell of it can be built here; nothing is fetched."""
    machine = _Machine(environ=environ, finders=indexes.read(environ))
    yield from map(machine.support, rows)


def cell_support(build: KernelBuild) -> Iterator[CellSupport]:
    """Yield for each cell of a kernel whether it can be built here, as far as is known before anything is fetched.

    Raises:
        ConfigError: the kernel cannot be rendered.
    """
    ask = replace(build.ask, crosses=True)
    machine = _Machine(environ=ask.environ, finders=indexes.read(ask.environ))
    planner = Planner(kernel=build.kernel, ask=ask, step=lambda _cell, _text: None)
    yield from (_cell_support(cell, planner, machine) for cell in build.cells)


def _cell_support(cell: Cell, planner: Planner, machine: _Machine) -> CellSupport:
    crosses = toolchain.crosses(cell)
    if crosses and not crossing.possible(cell.backend, cell.system):
        return CellSupport(cell=cell, missing=_no_machine(cell.system), help=_elsewhere(cell.system))
    problem = None if cell.noarch else machine.missing_tool(Backend.CPU, None, cell.system if crosses else None)
    if problem is not None:
        remedy = f"{problem.help}; or {_elsewhere(cell.system)}" if crosses else problem.help
        return CellSupport(cell=cell, missing=problem.message, help=remedy)
    try:
        spec = planner.spec(cell)
    except ConfigError:
        raise
    except BuilderError as error:
        return CellSupport(cell=cell, missing=error.message.removeprefix(f"{cell.variant}: "), help=error.help)
    ways = [f"with --system {cell.system}"] if crosses else []
    if isinstance(loader_of(spec, machine.environ), NotLoadable):
        ways.append("and are not loaded")
    return CellSupport(cell=cell, missing=None, how=", ".join(ways))
