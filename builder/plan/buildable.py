"""Tell which cells this machine can build, and what it lacks for the others; nothing is fetched."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder import pins, toolchain
from builder.config import Backend, Framework
from builder.environment import indexes, interpreters
from builder.errors import BuilderError, ConfigError, NotHereError
from builder.make.job import NotLoadable, loader_of
from builder.matrix import Row
from builder.matrix.variant import dotted
from builder.plan import crossing
from builder.plan.ask import KernelBuild
from builder.plan.planner import Planner
from builder.toolchain import emulator, this_machine
from builder.toolchain.tool import Search, no_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Whether a cell can be built here; `missing` says what it lacks."""

    variant: str
    """The cell's name; for a row of the matrix, the name of its classic torch cell."""
    missing: str | None
    help: str | None = None
    how: str = ""
    """Differences from other builds: the option that the cell needs, and that its wheel is not loaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Machine:
    """The tools and Pythons of this machine, each looked up once."""

    environ: Mapping[str, str]
    finders: indexes.Finders
    known: pins.Pins = field(default_factory=pins.load)
    _tools: dict[tuple[Backend, str | None, str | None], BuilderError | None] = field(default_factory=dict)
    _pythons: dict[str, Path | None] = field(default_factory=dict)

    def support(self, row: Row) -> Support:
        """Return whether this machine can build a row."""
        crosses, variant = row.system != toolchain.system(), row.variant or ""
        elsewhere = _elsewhere(row.system)
        if crosses and not crossing.possible(row.backend, row.system):
            return Support(variant=variant, missing=f"no machine of {row.system}", help=elsewhere)
        try:
            pinned, loaded = self._environment(row)
        except BuilderError as error:
            return Support(variant=variant, missing=error.message, help=error.help)
        # A toolkit among the pins is installed when needed.
        brings = any(wheel.name == crossing.NVCC for wheel in pinned.wheels)
        if crosses and row.backend is Backend.CUDA and not brings:
            return Support(variant=variant, missing=f"no CUDA {row.toolkit} for {row.system}", help=elsewhere)
        tool = (Backend.CPU, None) if brings else (row.backend, row.toolkit)
        target = row.system if crosses else None
        problem = self.missing_tool(*tool, target)
        if problem is None and row.backend is Backend.CUDA and row.toolkit is not None:
            try:
                this_machine.require_for_nvcc(self.tools, row.toolkit, target=target)
            except NotHereError as error:
                problem = error
        if problem is not None:
            remedy = f"{problem.help}; or {elsewhere}" if crosses else problem.help
            return Support(variant=variant, missing=problem.message, help=remedy)
        python, how = (*pinned.other_pythons, pinned.python)[0], ""
        if crosses:
            how = f"with --system {row.system}"
            try:
                emulator.find(self.tools, row.system, python=python)
            except NotHereError:
                how += ", and are not loaded"
        elif not loaded:
            lacking = dotted(python)
            how = f"and are not loaded, for lack of Python {lacking} (uv python install {lacking})"
        return Support(variant=variant, missing=None, how=how)

    @property
    def tools(self) -> Search:
        """The places to look for tools."""
        return Search(environ=self.environ, digest=no_digest)

    def _environment(self, row: Row) -> tuple[pins.PinSet, bool]:
        """Return the wheels of a row, and whether its torch is for a Python of this machine."""
        wanted = pins.Requirement(
            framework=Framework.TORCH, version=str(row.torch), compute=row.compute, python="", system=row.system
        )
        try:
            found = interpreters.interpreter_for(self.known, wanted, search=self._python)
        except interpreters.NoPythonError:
            at_hand = interpreters.at_hand(None)
            if at_hand is None:
                raise
            return self.known.environment(replace(wanted, python=at_hand.tag), any_python=True), False
        return self.known.environment(replace(wanted, python=found.tag)), True

    def _python(self, tag: str) -> Path | None:
        if tag not in self._pythons:
            self._pythons[tag] = interpreters.find(tag, finders=self.finders)
        return self._pythons[tag]

    def missing_tool(self, backend: Backend, toolkit: str | None, target: str | None) -> BuilderError | None:
        """Return why this machine lacks the tools of a backend; None if it has them."""
        key = backend, toolkit, target
        if key not in self._tools:
            self._tools[key] = None
            try:
                toolchain.find(backend, environ=self.environ, toolkit=toolkit, digest=no_digest, target=target)
            except BuilderError as error:
                self._tools[key] = error
        return self._tools[key]


def _elsewhere(system: str) -> str:
    return f"build it there, or in CI: builder matrix --system {system} --format github"


def row_support(rows: Sequence[Row], environ: Mapping[str, str]) -> Iterator[Support]:
    """Yield for each row whether this machine can build its classic torch cell."""
    machine = _Machine(environ=environ, finders=indexes.read(environ))
    yield from map(machine.support, rows)


def cell_support(build: KernelBuild) -> Iterator[Support]:
    """Yield for each cell of a kernel whether this machine can build it, as far as is known without fetching.

    Raises:
        ConfigError: the kernel cannot be rendered.
    """
    ask = replace(build.ask, crosses=True)
    machine = _Machine(environ=ask.environ, finders=indexes.read(ask.environ))
    planner = Planner(kernel=build.kernel, ask=ask)
    for cell in build.cells:
        crosses, elsewhere = toolchain.crosses(cell), _elsewhere(cell.system)
        if crosses and not crossing.possible(cell.backend, cell.system):
            yield Support(variant=cell.variant, missing=f"no machine of {cell.system}", help=elsewhere)
            continue
        problem = None if cell.noarch else machine.missing_tool(Backend.CPU, None, cell.system if crosses else None)
        if problem is not None:
            remedy = f"{problem.help}; or {elsewhere}" if crosses else problem.help
            yield Support(variant=cell.variant, missing=problem.message, help=remedy)
            continue
        try:
            spec = planner.spec(cell)
        except ConfigError:
            raise
        except BuilderError as error:
            missing = error.message.removeprefix(f"{cell.variant}: ")
            yield Support(variant=cell.variant, missing=missing, help=error.help)
            continue
        ways = [f"with --system {cell.system}"] if crosses else []
        if isinstance(loader_of(spec, machine.environ), NotLoadable):
            ways.append("and are not loaded")
        yield Support(variant=cell.variant, missing=None, how=", ".join(ways))
