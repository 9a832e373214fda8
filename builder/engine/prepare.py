"""Find what a cell is built with, and its build key; if the store knows enough, no environment is made."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from builder import pins, render, toolchain
from builder.build import header_folders, own_code, prepare
from builder.build.framework import FrameworkIdentity, identity_of
from builder.build.loadtest.packages import depended, parts, wanted
from builder.build.prepare import BuildInputs, Prepared, RunOptions
from builder.build.record import BuildRecord
from builder.build.sandbox import contents
from builder.build.spec import BuildSpec, InstalledPackages, PinnedPackages
from builder.config import Backend, LoadTestRule
from builder.engine import current_environment, environment_wheels
from builder.engine.options import Options
from builder.environment import indexes, interpreters, pinned
from builder.errors import BuilderError, ConfigError, NotHereError, ToolError
from builder.kernel import Kernel
from builder.matrix import Cell, coverage
from builder.render import foreign as rendered_sources
from builder.render.project import Project
from builder.run import Processes
from builder.store import HEADERS
from builder.toolchain import Toolchain, cuda_wheels, installed
from builder.toolchain.installed import Current
from builder.toolchain.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Facts that only an installed environment tells, remembered by the store for its pins."""

    framework: FrameworkIdentity
    cuda: Mapping[str, str] | None = None
    """Version and digest of the nvcc among the pinned wheels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """A cell that this machine may build, before its environment is there."""

    spec: BuildSpec
    project: Project
    python: Path
    """The interpreter of its environment; without isolation, the one that has the framework."""
    framework: FrameworkIdentity | None = None
    """The framework, where it is installed already: without isolation."""

    @property
    def cell(self) -> Cell:
        """What is built."""
        return self.spec.cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparer:
    """Finds what cells are built with; several threads may ask."""

    kernel: Kernel
    options: Options
    step: Callable[[Cell, str], None]
    processes: Processes = field(default_factory=Processes)
    known: pins.Pins = field(default_factory=pins.load)
    _projects: dict[Backend, Project] = field(default_factory=dict)
    _looked: list[Current] = field(default_factory=list)
    _rendering: threading.Lock = field(default_factory=threading.Lock)

    def request(self, cell: Cell) -> BuildRequest:
        """Render a cell and choose its pins and its Python.

        Raises:
            NotHereError: this machine lacks something.
            BuilderError: a component would have no device code.
        """
        if cell.system != toolchain.system() and not cell.noarch:
            raise NotHereError(
                f"{cell.variant} needs a machine of {cell.system}; this one is {toolchain.system()}",
                help=f"build it on {cell.system}, or in CI: builder matrix --system {cell.system} --format github",
            )
        coverage.require(self.kernel.config, cell, self.options.wheel.only)
        project, options = self._project(cell.backend), self.options.of_build
        environment: PinnedPackages | InstalledPackages
        framework: FrameworkIdentity | None = None
        with _failing_as_tool():
            if self.options.isolation:
                environment, python = self._isolated(cell)
            else:
                environment, framework = current_environment.found(cell, self._current())
                python = environment.python
        spec = BuildSpec(kernel=self.kernel.root, cell=cell, environment=environment, options=options)
        return BuildRequest(spec=spec, project=project, python=python, framework=framework)

    @property
    def rule(self) -> LoadTestRule:
        """What becomes of a wheel that cannot be imported; a part of the objects makes none."""
        if self.options.part is not None:
            return LoadTestRule.SKIP
        return self.options.load_test or self.kernel.config.load_test

    def record(self, request: BuildRequest) -> BuildRecord | None:
        """Return the build record, if no environment has to be made to know it.

        Raises:
            NotHereError: this machine lacks something that the cell needs.
            ToolError: a tool failed.
        """
        with _failing_as_tool():
            known = self._remembered(request)
            if known is None:
                return None
            return prepare.record(self._inputs(request, known.framework, self._tools(request, known)))

    def prepare(self, request: BuildRequest) -> Prepared:
        """Make the environment, if it is not there, and return the job and its record.

        Raises:
            NotHereError: this machine lacks something.
        """
        spec = request.spec
        site_packages = spec.environment.site_packages
        with _failing_as_tool():
            if isinstance(spec.environment, PinnedPackages):
                self._make(request, spec.environment.pins)
            root = self._toolkit_root(spec.cell, site_packages)
            tools = self._toolchain(spec.cell, root)
            framework = request.framework or identity_of(spec.cell.framework, site_packages)
            spec = replace(
                spec,
                test_environment=self._test_environment(request),
                headers=self._headers(spec.cell),
                sources=self._sources(spec.cell),
            )
            given = self._inputs(replace(request, spec=spec), framework, tools)
        isolated = isinstance(spec.environment, PinnedPackages)
        if isolated:
            nvcc = None if tools is None or root is None else tools.cuda
            cuda = None if nvcc is None else {"version": nvcc.version, "digest": nvcc.digest}
            note = {"builder": own_code.identity(), **asdict(_Known(framework=framework, cuda=cuda))}
            self.options.store.set_note(_note(spec), note)
        kernels = self._kernels(spec.cell)
        run_options = RunOptions(cores=self.options.limits.cores, kernels=kernels, keeps_bytecode=isolated)
        return prepare.prepare(given, run_options)

    def _project(self, backend: Backend) -> Project:
        with self._rendering:
            if backend not in self._projects:
                self._projects[backend] = render.render(
                    self.kernel,
                    backend,
                    unique_id=self.options.unique_id,
                    allow_unsafe_flags=self.options.allow_unsafe_flags,
                    only=self.options.wheel.only,
                )
            return self._projects[backend]

    def _current(self) -> Current:
        """Return what the current environment has; it is looked at once."""
        with self._rendering:
            if not self._looked:
                self._looked.append(installed.look(self.options.python))
            return self._looked[0]

    def _isolated(self, cell: Cell) -> tuple[PinnedPackages, Path]:
        """Return the environment of a cell, and the Python that it is made with."""
        requirement = _requirement(cell)
        places = indexes.read(self.options.environ)
        found = interpreters.interpreter_for(
            self.known,
            requirement,
            finders=places,
            preferred=self.options.python,
            search=lambda tag: interpreters.find(tag, finders=places, processes=self.processes),
            only=cell.python,
        )
        wanted = environment_wheels.of(
            self.known,
            replace(requirement, python=found.tag),
            self.kernel.config,
            cell.backend,
            environ=self.options.environ,
        )
        return self._packages(wanted), found.path

    def _packages(self, wanted: pins.PinSet) -> PinnedPackages:
        return PinnedPackages(path=pinned.at(wanted, self.options.store.root).path, pins=wanted)

    def _remembered(self, request: BuildRequest) -> _Known | None:
        if request.framework is not None:
            return _Known(framework=request.framework)
        note = self.options.store.note(_note(request.spec))
        if note is None or note.get("builder") != own_code.identity():
            return None
        return _Known(framework=FrameworkIdentity(**note["framework"]), cuda=note["cuda"])

    def _inputs(self, request: BuildRequest, framework: FrameworkIdentity, tools: Toolchain | None) -> BuildInputs:
        rules = self.options.rules
        sandboxed = contents.uses_sandbox(rules)
        return BuildInputs(
            spec=request.spec,
            kernel=self.kernel,
            project=request.project,
            framework=framework,
            toolchain=tools,
            environ=self.options.environ,
            canonical=contents.uses_canonical_path(rules, sandboxed=sandboxed),
            sandboxed=sandboxed,
            rules=rules,
        )

    def _make(self, request: BuildRequest, wanted: pins.PinSet, *, bytecode: bool = False) -> None:
        pinned.make(
            wanted,
            store_root=self.options.store.root,
            python=request.python,
            finders=indexes.read(self.options.environ),
            progress=lambda text: self.step(request.cell, text),
            processes=self.processes,
            bytecode=bytecode,
        )

    def _test_environment(self, request: BuildRequest) -> PinnedPackages | None:
        """Make what the load test has after the environment of the build, which stays as it is."""
        cell, environment = request.cell, request.spec.environment
        if self.rule is LoadTestRule.SKIP or isinstance(environment, InstalledPackages):
            return None
        requirement = replace(_requirement(cell), python=environment.pins.python)
        names = wanted(self.kernel, cell)
        declared = self.known.additional(parts(names), requirement, base=environment.pins)
        pinned = self._with_required(request, environment.pins, declared)
        if not pinned.wheels:
            return None
        try:
            self._make(request, pinned, bytecode=True)
        except NotHereError as error:
            raise NotHereError(
                f"the load test needs {', '.join((*names, *self.kernel.config.requires))}: {error.message}",
                help=f"{error.help}; or build without the load test, with '--load-test skip'",
            ) from error
        return self._packages(pinned)

    def _with_required(self, request: BuildRequest, base: pins.PinSet, declared: pins.PinSet) -> pins.PinSet:
        """Add what [wheel] requires; a test that may fail goes on without it."""
        requires = self.kernel.config.requires
        if not requires:
            return declared
        from builder.environment import required  # noqa: PLC0415  few kernels need it

        try:
            found = required.wheels(
                requires, base=base, store=self.options.store, env=indexes.read(self.options.environ).env
            )
        except ToolError as error:
            if self.rule is not LoadTestRule.TRY:
                raise
            self.step(request.cell, error.message.splitlines()[0])
            return declared
        wheels = {wheel.name: wheel for wheel in (*found, *declared.wheels)}
        return replace(declared, wheels=tuple(wheels[name] for name in sorted(wheels)))

    def _kernels(self, cell: Cell) -> Mapping[str, Path]:
        if self.rule is LoadTestRule.SKIP or not depended(self.kernel, cell.backend):
            return {}
        from builder.engine import kernel_depends  # noqa: PLC0415  reads wheels, which few kernels need

        return kernel_depends.kernels(self.kernel, cell, store=self.options.store, output=self.options.output)

    def _headers(self, cell: Cell) -> Mapping[str, Path]:
        if cell.noarch:
            return {}
        root = self.options.store.root / HEADERS
        return header_folders.fetched(self.kernel.config, cell.backend, environ=self.options.environ, root=root)

    def _sources(self, cell: Cell) -> Mapping[str, Path]:
        """Fetch the foreign sources of a cell that are not there, and verify all of them."""
        names = () if cell.noarch else rendered_sources.used(self.kernel.config, cell.backend)
        if not names:
            return {}
        from builder.environment.foreign import Trees  # noqa: PLC0415  few kernels have foreign sources

        trees = Trees(
            store=self.options.store,
            environ=self.options.environ,
            progress=lambda text: self.step(cell, text),
            processes=self.processes,
        )
        return {
            str(name): trees.tree(name, source) for name, source in self.kernel.config.sources.items() if name in names
        }

    def _toolkit_root(self, cell: Cell, site_packages: Path) -> Path | None:
        root = cuda_wheels.cuda_root(site_packages) if cell.backend is Backend.CUDA else None
        if root is not None:
            cuda_wheels.complete(root)
        return root

    def _tools(self, request: BuildRequest, known: _Known) -> Toolchain | None:
        """Return the toolchain; an nvcc from pinned wheels is known by its pins, and need not be installed."""
        if known.cuda is None:
            return self._toolchain(request.cell, None)
        host = toolchain.find(Backend.CPU, environ=self.options.environ, digest=self.options.store.digest)
        return replace(host, cuda=Tool(path=Path("nvcc"), **known.cuda))

    def _toolchain(self, cell: Cell, root: Path | None) -> Toolchain | None:
        return toolchain.of_cell(cell, environ=self.options.environ, root=root, digest=self.options.store.digest)


@contextlib.contextmanager
def _failing_as_tool() -> Iterator[None]:
    """Turn any error here into a tool's failure; a `NotHereError` stays one."""
    try:
        yield
    except (ConfigError, ToolError):
        raise
    except BuilderError as error:
        raise ToolError(error.message, help=error.help) from error


def _requirement(cell: Cell) -> pins.Requirement:
    """Return what the environment of a cell is for, before a Python is chosen."""
    requirement = pins.Requirement.of(cell, "")
    if cell.noarch and cell.system != toolchain.system():
        # A wheel without code is the same for every system, and is loaded with what this machine can have of torch.
        return replace(requirement, compute="cpu", system=toolchain.system())
    return requirement


def _note(spec: BuildSpec) -> str:
    return f"pins-{spec.pins}-{spec.cell.framework}"
