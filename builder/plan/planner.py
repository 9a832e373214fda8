"""Find the environment, tools and build key of a cell, without making an environment if the store has the facts."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder import codec, pins, render, toolchain
from builder.config import Backend, Config, Framework, libraries
from builder.environment import indexes, interpreters, pinned, resolve
from builder.environment.fetch import Installer, Reach
from builder.errors import BuilderError, ConfigError, NotHereError, ToolError
from builder.kernel import Kernel
from builder.make import header_folders
from builder.make.framework import FrameworkIdentity, identity_of
from builder.make.job import InstalledPackages, Job, PinnedPackages, Spec, with_load_test
from builder.make.record import BuildRecord, identity, record_of
from builder.matrix import Cell, coverage, linked_libraries
from builder.plan import crossing, installed
from builder.plan.ask import Ask
from builder.plan.crossing import NVCC
from builder.plan.load_test_needs import LoadTestNeeds
from builder.render import source_scan
from builder.render.external_sources import used_sources
from builder.render.project import Project
from builder.run import Processes
from builder.store import COMPILERS, HEADERS, KERNELS, SOURCES
from builder.toolchain import Toolchain, cuda_wheels, this_machine
from builder.toolchain.this_machine import CurrentPython
from builder.toolchain.tool import Search, Tool, no_digest


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Facts that only an installed environment tells; the store remembers them for its pins."""

    framework: FrameworkIdentity
    cuda: Mapping[str, str] | None = None
    """Version and digest of the nvcc in the pinned wheels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """Finds the specs of a kernel's cells, and their environments and tools; several threads may use it."""

    kernel: Kernel
    ask: Ask
    step: Callable[[Cell, str], None] = lambda _cell, _text: None
    """Called for each step; a dry run has no listener."""
    processes: Processes = field(default_factory=Processes)
    reach: Reach = field(default_factory=Reach)
    """The reachability of indexes, shared by the cells of a run."""
    resolves: bool = False
    """Whether to ask indexes for files that are not pinned."""
    known: pins.Pins = field(default_factory=pins.load)
    _projects: dict[Backend, Project] = field(default_factory=dict)
    _installed: list[CurrentPython] = field(default_factory=list)
    """The frameworks of the current environment, which is examined once."""
    _frameworks: dict[Framework, FrameworkIdentity] = field(default_factory=dict)
    """The identities of the frameworks in the current environment."""
    _pythons: dict[str, Path | None] = field(default_factory=dict)
    """The Pythons by tag; uv is asked once for each tag, and not for each cell."""
    _makers: dict[str, Path] = field(default_factory=dict)
    """The interpreters that make environments, by tag."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def spec(self, cell: Cell) -> Spec:
        """Return the spec of a cell that this machine may build: rendered, with its pins and its Python.

        Raises:
            NotHereError: this machine lacks something.
            BuilderError: a component would have no device code.
        """
        crosses = toolchain.crosses(cell)
        if crosses:
            crossing.require(cell, self.ask)
        coverage.require(self.kernel.config, cell, self.ask.options.only)
        project, options = self._project(cell.backend), self.ask.of_build
        if crosses:
            crossing.require_no_python(cell, project)
        environment: PinnedPackages | InstalledPackages
        with _failing_as_tool():
            if not cell.noarch and cell.backend is Backend.CUDA and cell.toolkit is not None:
                # Refuse a compiler that nvcc would refuse before anything is fetched.
                search = Search(environ=self.ask.environ, digest=self.ask.store.digest)
                this_machine.require_for_nvcc(search, cell.toolkit, target=cell.system if crosses else None)
            if self.ask.isolation:
                environment = self._isolated(cell, project)
            else:
                with self._lock:
                    if not self._installed:
                        self._installed.append(this_machine.installed_frameworks(self.ask.python))
                environment, self._frameworks[cell.framework] = installed.framework_of(cell, self._installed[0])
        return Spec(kernel=self.kernel.root, cell=cell, environment=environment, options=options)

    def record(self, spec: Spec) -> BuildRecord | None:
        """Return the build record; None if that needs an environment which does not exist yet.

        Raises:
            NotHereError: this machine lacks something that the cell needs.
            ToolError: a tool failed.
        """
        with _failing_as_tool():
            if isinstance(spec.environment, InstalledPackages):
                known = _Known(framework=self._frameworks[spec.cell.framework])
            else:
                note = self.ask.store.note(_note(spec))
                if note is None or note.get("builder") != identity():
                    return None
                known = codec.decode(_Known, note)
            cell, environ, digest = spec.cell, self.ask.environ, self.ask.store.digest
            if known.cuda is None:
                tools = toolchain.of_cell(cell, environ=environ, digest=digest)
            else:  # the pins identify an nvcc from wheels, so it need not be installed
                target = cell.system if toolchain.crosses(cell) else None
                compilers = toolchain.find(Backend.CPU, environ=environ, digest=digest, target=target)
                tools = replace(compilers, cuda=Tool(path=Path("nvcc"), **known.cuda))
            return record_of(self._job(spec, known.framework, tools))

    def job(self, spec: Spec) -> Job:
        """Make the environment of a spec, unless it exists, and return its job.

        Raises:
            NotHereError: this machine lacks something.
        """
        cell, site_packages = spec.cell, spec.environment.site_packages
        isolated = isinstance(spec.environment, PinnedPackages)
        with _failing_as_tool():
            if isinstance(spec.environment, PinnedPackages):
                self._make(spec, spec.environment.pins)
            root = cuda_wheels.cuda_root(site_packages) if cell.backend is Backend.CUDA else None
            if root is not None:
                cuda_wheels.complete(root)
            tools = toolchain.of_cell(cell, environ=self.ask.environ, root=root, digest=self.ask.store.digest)
            framework = identity_of(cell.framework, site_packages) if isolated else self._frameworks[cell.framework]
            spec = replace(
                spec,
                test_environment=self._test_environment(spec),
                headers=self._headers(cell),
                sources=self._sources(cell),
            )
        if isolated:
            nvcc = None if tools is None or root is None else tools.cuda
            cuda = None if nvcc is None else {"version": nvcc.version, "digest": nvcc.digest}
            note = {"builder": identity(), **codec.encode(_Known(framework=framework, cuda=cuda))}
            self.ask.store.set_note(_note(spec), note)
        kernels, locked = self._load_test.kernels(cell)
        job = replace(self._job(spec, framework, tools), cores=self.ask.cores, keeps_bytecode=isolated)
        return with_load_test(job, kernels=kernels, locked=locked)

    @contextlib.contextmanager
    def held(self, spec: Spec) -> Iterator[Job]:
        """Make the environment, and lock everything in the store that the build needs against removal.

        Raises:
            NotHereError: this machine lacks something.
        """
        store = self.ask.store
        while True:
            job = self.job(spec)
            with contextlib.ExitStack() as held:
                used = self._used(job)
                for name in used:
                    held.enter_context(store.use(name))
                # Make again what was removed as unused in between.
                if all(path.is_dir() for path in used.values()):
                    yield job
                    return

    def _used(self, job: Job) -> Mapping[str, Path]:
        """Return the store's folders that a build needs, by the names of the locks that prevent their removal."""
        fetched = self.ask.store.root / HEADERS
        headers = [folder for folder in job.spec.headers.values() if folder.parent == fetched]
        sources = [tree.parent for tree in job.spec.sources.values()]
        kernels = [folder.parent.parent for folder in job.test_packages.kernel_folders]
        return {
            **{f"environment-{path.name}": path for path in job.spec.environments},
            **{f"{HEADERS}-{path.name}": path for path in headers},
            **{f"{SOURCES}-{path.name}": path for path in sources},
            **{f"{KERNELS}-{path.name}": path for path in kernels},
            **{f"{COMPILERS}-{path.name}": path for path in self.ask.compilers},
        }

    def _project(self, backend: Backend) -> Project:
        with self._lock:
            if backend not in self._projects:
                self._projects[backend] = render.render(
                    self.kernel,
                    backend,
                    unique_id=self.ask.options.unique_id,
                    allow_unsafe_flags=self.ask.options.allow_unsafe_flags,
                    only=self.ask.options.only,
                )
            return self._projects[backend]

    def _isolated(self, cell: Cell, project: Project) -> PinnedPackages:
        """Return the environment of a cell."""
        requirement, preferred, any_python = self._requirement(cell), self.ask.python, False
        known = self._completed(cell, requirement)
        try:
            found = interpreters.interpreter_for(
                known, requirement, search=self._search, preferred=preferred, only=cell.python
            )
        except interpreters.NoPythonError:
            # The environment only runs CMake: nothing is compiled against Python, and nothing is imported in a test.
            at_hand = interpreters.at_hand(preferred)
            if at_hand is None or cell.python is not None or source_scan.needed_by(project):
                raise
            found, any_python = at_hand, True
        self._makers[found.tag] = found.path
        requirement = replace(requirement, python=found.tag)
        wanted = pinned_wheels(
            known, requirement, self.kernel.config, cell, environ=self.ask.environ, any_python=any_python
        )
        if toolchain.crosses(cell):
            wanted = crossing.environment(known, wanted, requirement, cell)
        if cell.backend is not Backend.CPU and not any(wheel.name == NVCC for wheel in wanted.wheels):
            # Refuse a cell whose toolkit this machine lacks before gigabytes are fetched for it.
            toolchain.of_cell(cell, environ=self.ask.environ, digest=no_digest)
        return pinned.at(wanted, self.ask.store.root)

    def _completed(self, cell: Cell, requirement: pins.Requirement) -> pins.Pins:
        """Return the pins, with files of an index if none are pinned for a cell with any Python.

        Raises:
            MissingPinsError: no index has them, or none can be reached.
        """
        if self.known.pinned_pythons(requirement):
            return self.known
        here = interpreters.at_hand(self.ask.python)
        if here is None:
            return self.known
        wanted = replace(requirement, python=cell.python or here.tag)
        finders = indexes.read(self.ask.environ)
        try:
            found, wheels = resolve.completed(
                self.known,
                wanted,
                store=self.ask.store,
                env=finders.with_folders if self.resolves else None,
                processes=self.processes,
            )
        except resolve.UnresolvedError as error:
            if self.processes.cancelled:
                raise
            said = error.message.splitlines()[-1]
            raise pins.MissingPinsError(
                f"no wheels are pinned for {wanted}, and no index that can be reached has them (uv: {said.strip()})"
            ) from error
        for wheel in wheels:
            self.step(cell, f"not pinned, as the index has it: {wheel.file}, sha256 {wheel.sha256}")
        return found

    def _requirement(self, cell: Cell) -> pins.Requirement:
        """Return the requirement of a cell's environment without its Python; a noarch wheel's torch must load here."""
        return self.known.need(replace(cell, system=toolchain.system()) if cell.noarch else cell)

    def _search(self, tag: str) -> Path | None:
        with self._lock:
            if tag not in self._pythons:
                finders = indexes.read(self.ask.environ)
                self._pythons[tag] = interpreters.find(tag, finders=finders, processes=self.processes)
            return self._pythons[tag]

    def _job(self, spec: Spec, framework: FrameworkIdentity, tools: Toolchain | None) -> Job:
        """Return the job of a spec, with the parts that its build key needs."""
        return Job(
            spec=spec,
            kernel=self.kernel,
            project=self._project(spec.cell.backend),
            framework=framework,
            toolchain=tools,
            environ=self.ask.environ,
        )

    def maker(self, tag: str) -> Path:
        """Return the interpreter that makes the environments of a tag, as chosen for a spec."""
        return self._makers[tag]

    def _make(self, spec: Spec, wanted: pins.PinSet, *, bytecode: bool = False) -> PinnedPackages:
        installer = Installer(
            finders=indexes.read(self.ask.environ),
            progress=lambda text: self.step(spec.cell, text),
            processes=self.processes,
            reach=self.reach,
            bytecode=bytecode,
        )
        python = self.maker(wanted.python)
        return pinned.make(wanted, store_root=self.ask.store.root, python=python, installer=installer)

    def _test_environment(self, spec: Spec) -> PinnedPackages | None:
        """Make the additional environment for the load test; the build's environment stays unchanged."""
        if isinstance(spec.environment, InstalledPackages):
            return None
        requirement = replace(self._requirement(spec.cell), python=spec.environment.pins.python)
        found = self._load_test.packages(spec, spec.environment.pins, requirement)
        if found is None:
            return None
        try:
            return self._make(spec, found, bytecode=True)
        except NotHereError as error:
            raise self._load_test.lacking(spec.cell, error) from error

    @property
    def _load_test(self) -> LoadTestNeeds:
        return LoadTestNeeds(
            kernel=self.kernel,
            ask=self.ask,
            rule=self.ask.load_test_of(self.kernel),
            known=self.known,
            step=self.step,
            processes=self.processes,
        )

    def _headers(self, cell: Cell) -> Mapping[str, Path]:
        if cell.noarch:
            return {}
        root = self.ask.store.root / HEADERS
        return header_folders.fetched(self.kernel.config, cell.backend, environ=self.ask.environ, root=root)

    def _sources(self, cell: Cell) -> Mapping[str, Path]:
        """Fetch the foreign sources of a cell that the store lacks, and verify all."""
        names = () if cell.noarch else used_sources(self.kernel.config, cell.backend)
        if not names:
            return {}
        from builder.environment import download, foreign  # noqa: PLC0415  few kernels have foreign sources

        fetching = download.Fetching(
            store=self.ask.store,
            environ=self.ask.environ,
            progress=lambda text: self.step(cell, text),
            processes=self.processes,
        )
        wanted = {name: source for name, source in self.kernel.config.sources.items() if name in names}
        return {str(name): foreign.tree(name, source, fetching) for name, source in wanted.items()}


def pinned_wheels(
    known: pins.Pins,
    requirement: pins.Requirement,
    config: Config,
    cell: Cell,
    *,
    environ: Mapping[str, str],
    any_python: bool = False,
) -> pins.PinSet:
    """Return the wheels to build a cell with, sorted by name, as `environmentOf` in `cells.nix` does.

    `any_python` allows wheels for other Pythons, for a kernel that does not use Python.

    Raises:
        MissingPinsError: a part is not pinned for this Python and system.
    """
    base = known.environment(requirement, any_python=any_python)
    headers = header_folders.wheels(config, cell.backend, environ=environ)
    linked = known.additional(libraries.parts(linked_libraries(config, cell)), requirement, base=base)
    wheels = sorted((*base.wheels, *headers, *linked.wheels), key=lambda wheel: wheel.name)
    return replace(base, wheels=tuple(wheels))


@contextlib.contextmanager
def _failing_as_tool() -> Iterator[None]:
    """Turn any error into a tool's failure, except a `NotHereError`."""
    try:
        yield
    except (ConfigError, ToolError):
        raise
    except BuilderError as error:
        raise ToolError(error.message, help=error.help) from error


def _note(spec: Spec) -> str:
    return f"pins-{spec.pins}-{spec.cell.framework}"
