"""Find what a cell is built with, and its build key; if the store knows enough, no environment is made."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from builder import pins, render, toolchain
from builder.config import Backend, LoadTestRule
from builder.environment import indexes, interpreters, pinned
from builder.environment.fetch import Reach
from builder.errors import BuilderError, ConfigError, NotHereError, ToolError
from builder.kernel import Kernel
from builder.make import header_folders, own_code, prepare
from builder.make import sandbox_contents as contents
from builder.make.framework import FrameworkIdentity, identity_of
from builder.make.prepare import BuildInputs, Prepared, RunOptions
from builder.make.record import BuildRecord
from builder.make.spec import BuildSpec, InstalledPackages, PinnedPackages
from builder.matrix import Cell, coverage
from builder.plan import crossing, current_environment, environment_wheels
from builder.plan.crossing import NVCC
from builder.plan.load_test_needs import LoadTestNeeds
from builder.plan.options import Options
from builder.render import source_scan
from builder.render.project import Project
from builder.render.sources import used_sources
from builder.run import Processes
from builder.store import COMPILERS, HEADERS, KERNELS, SOURCES
from builder.toolchain import Toolchain, cuda_wheels, this_machine
from builder.toolchain.this_machine import CurrentPython
from builder.toolchain.tool import Search, Tool


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
    reach: Reach = field(default_factory=Reach)
    """What came of asking each index; the cells of a run share it."""
    known: pins.Pins = field(default_factory=pins.load)
    _projects: dict[Backend, Project] = field(default_factory=dict)
    _looked: list[CurrentPython] = field(default_factory=list)
    _pythons: dict[str, Path | None] = field(default_factory=dict)
    _rendering: threading.Lock = field(default_factory=threading.Lock)

    def request(self, cell: Cell) -> BuildRequest:
        """Render a cell and choose its pins and its Python.

        Raises:
            NotHereError: this machine lacks something.
            BuilderError: a component would have no device code.
        """
        crosses = toolchain.crosses(cell)
        if crosses:
            crossing.require(cell, self.options)
        coverage.require(self.kernel.config, cell, self.options.wheel.only)
        project, options = self._project(cell.backend), self.options.of_build
        if crosses:
            crossing.require_no_python(cell, project)
        environment: PinnedPackages | InstalledPackages
        framework: FrameworkIdentity | None = None
        with _failing_as_tool():
            self._require_host_compiler(cell)
            if self.options.isolation:
                environment, python = self._isolated(cell, project)
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
        kernels, locked = self._load_test.kernels(spec.cell)
        run_options = RunOptions(
            cores=self.options.limits.cores, kernels=kernels, locked=locked, keeps_bytecode=isolated
        )
        return prepare.prepare(given, run_options)

    @contextlib.contextmanager
    def held(self, request: BuildRequest) -> Iterator[Prepared]:
        """Make the environment, and keep all that the build needs of the store from being removed.

        Raises:
            NotHereError: this machine lacks something.
        """
        store = self.options.store
        while True:
            prepared = self.prepare(request)
            with contextlib.ExitStack() as held:
                used = self._used(prepared)
                for name in used:
                    held.enter_context(store.use(name))
                # What was removed as unused in between is made again.
                if all(path.is_dir() for path in used.values()):
                    yield prepared
                    return

    def _used(self, prepared: Prepared) -> Mapping[str, Path]:
        """Return the folders of the store that a build needs, each by the lock that keeps it from being removed."""
        fetched = self.options.store.root / HEADERS
        headers = [folder for folder in prepared.job.headers.values() if folder.parent == fetched]
        sources = [tree.parent for tree in prepared.job.sources.values()]
        kernels = [folder.parent.parent for folder in prepared.job.test_packages.kernel_folders]
        return {
            **{f"environment-{path.name}": path for path in prepared.environments},
            **{f"{HEADERS}-{path.name}": path for path in headers},
            **{f"{SOURCES}-{path.name}": path for path in sources},
            **{f"{KERNELS}-{path.name}": path for path in kernels},
            **{f"{COMPILERS}-{path.name}": path for path in self.options.compilers},
        }

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

    def _current(self) -> CurrentPython:
        """Return what the current environment has; it is looked at once."""
        with self._rendering:
            if not self._looked:
                self._looked.append(this_machine.installed_frameworks(self.options.python))
            return self._looked[0]

    def _isolated(self, cell: Cell, project: Project) -> tuple[PinnedPackages, Path]:
        """Return the environment of a cell, and the Python that it is made with."""
        requirement, config = _requirement(cell, self.known), self.kernel.config
        found, any_python = self._interpreter(cell, requirement, project)
        requirement, environ = replace(requirement, python=found.tag), self.options.environ
        wanted = environment_wheels.of(self.known, requirement, config, cell, environ=environ, any_python=any_python)
        if toolchain.crosses(cell):
            wanted = crossing.environment(self.known, wanted, requirement, cell)
        if not any(wheel.name == NVCC for wheel in wanted.wheels):
            self._require_toolkit(cell)
        return self._packages(wanted), found.path

    def _require_host_compiler(self, cell: Cell) -> None:
        """Refuse a compiler that nvcc would refuse, before anything is fetched."""
        if cell.noarch or cell.backend is not Backend.CUDA or cell.toolkit is None:
            return
        search = Search(environ=self.options.environ, digest=self.options.store.digest)
        target = cell.system if toolchain.crosses(cell) else None
        this_machine.require_for_nvcc(search, cell.toolkit, target=target)

    def _require_toolkit(self, cell: Cell) -> None:
        """Refuse a cell whose toolkit this machine lacks, before gigabytes are fetched for it."""
        if cell.backend is not Backend.CPU:
            toolchain.of_cell(cell, environ=self.options.environ, digest=lambda path: path.name)

    def _search(self, tag: str, places: indexes.Finders) -> Path | None:
        """Return the Python of a tag; uv is asked once for each, and not for each cell."""
        with self._rendering:
            if tag not in self._pythons:
                self._pythons[tag] = interpreters.find(tag, finders=places, processes=self.processes)
            return self._pythons[tag]

    def _interpreter(
        self, cell: Cell, requirement: pins.Requirement, project: Project
    ) -> tuple[interpreters.Interpreter, bool]:
        """Return the Python of an environment, and whether the framework may be pinned for another one."""
        places, preferred = indexes.read(self.options.environ), self.options.python
        try:
            found = interpreters.interpreter_for(
                self.known,
                requirement,
                finders=places,
                preferred=preferred,
                search=lambda tag: self._search(tag, places),
                only=cell.python,
            )
        except interpreters.NoPythonError:
            # It only runs CMake, where nothing is compiled against Python or imported to be tested.
            at_hand = interpreters.at_hand(preferred)
            if at_hand is None or cell.python is not None or source_scan.needed_by(project):
                raise
            return at_hand, True
        return found, False

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
            reach=self.reach,
            bytecode=bytecode,
        )

    def _test_environment(self, request: BuildRequest) -> PinnedPackages | None:
        """Make what the load test has after the environment of the build, which stays as it is."""
        if isinstance(request.spec.environment, InstalledPackages):
            return None
        requirement = replace(_requirement(request.cell, self.known), python=request.spec.environment.pins.python)
        found = self._load_test.packages(request.spec, request.spec.environment.pins, requirement)
        if found is None:
            return None
        try:
            self._make(request, found, bytecode=True)
        except NotHereError as error:
            raise self._load_test.lacking(request.cell, error) from error
        return self._packages(found)

    @property
    def _load_test(self) -> LoadTestNeeds:
        return LoadTestNeeds(
            kernel=self.kernel,
            options=self.options,
            rule=self.rule,
            known=self.known,
            step=self.step,
            processes=self.processes,
        )

    def _headers(self, cell: Cell) -> Mapping[str, Path]:
        if cell.noarch:
            return {}
        root = self.options.store.root / HEADERS
        return header_folders.fetched(self.kernel.config, cell.backend, environ=self.options.environ, root=root)

    def _sources(self, cell: Cell) -> Mapping[str, Path]:
        """Fetch the foreign sources of a cell that are not there, and verify all of them."""
        names = () if cell.noarch else used_sources(self.kernel.config, cell.backend)
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
        compilers = toolchain.find(
            Backend.CPU,
            environ=self.options.environ,
            digest=self.options.store.digest,
            target=request.cell.system if toolchain.crosses(request.cell) else None,
        )
        return replace(compilers, cuda=Tool(path=Path("nvcc"), **known.cuda))

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


def _requirement(cell: Cell, known: pins.Pins) -> pins.Requirement:
    """Return what the environment of a cell is for, before a Python is chosen; a wheel without code is loaded here."""
    return known.need(replace(cell, system=toolchain.system()) if cell.noarch else cell)


def _note(spec: BuildSpec) -> str:
    return f"pins-{spec.pins}-{spec.cell.framework}"
