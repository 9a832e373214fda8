"""What a cell is built with, and the build key that follows: without an environment where the store knows enough."""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from builder import pins, render, toolchain
from builder.build import header_folders, own_code, reproducible, sandbox
from builder.build.framework import FrameworkIdentity, python_of_torch, torch_identity, tvm_ffi_identity
from builder.build.job import Beside, Job
from builder.build.loadtest.beside import depended, found, parts, wanted
from builder.build.record import BuildRecord, file_digests, of_build_tools
from builder.config import Backend, Framework, LoadTestRule
from builder.engine.options import Options
from builder.environment import indexes, interpreters, pinned
from builder.errors import BuilderError, ConfigError, NotHereError, ToolError
from builder.kernel import Kernel
from builder.matrix import Cell, coverage
from builder.render import python_api
from builder.render.project import Project
from builder.run import Processes
from builder.toolchain import Toolchain, cuda_wheels, installed
from builder.toolchain.tool import REACHES_BUILD, Tool
from builder.wheel import metadata

_NEEDS_TOOLCHAIN = {Backend.CPU, Backend.CUDA, Backend.ROCM, Backend.XPU, Backend.METAL}
_OF_TORCH = {Backend.CUDA: "cuda", Backend.ROCM: "hip", Backend.XPU: "xpu"}
"""What torch's identity calls the toolkit of its build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """What only an installed environment tells, and the store remembers for its pins."""

    framework: Mapping[str, object]
    """The identity of torch or tvm-ffi."""
    cuda: Mapping[str, str] | None = None
    """Version and digest of the nvcc among the pinned wheels."""

    @property
    def version(self) -> str:
        """The framework's whole version."""
        return str(self.framework["version"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A cell that this machine may build, before its environment is there."""

    cell: Cell
    project: Project
    wanted: pins.PinSet | None
    """The pinned wheels; None without isolation."""
    python: Path
    installed: Path | None = None
    """Where the framework is, without isolation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A cell with everything its key is made of."""

    job: Job
    record: BuildRecord
    environments: tuple[Path, ...] = ()
    """What of the store it uses: the environment of the build, and that of the load test beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparer:
    """Finds what cells are built with; several threads may ask."""

    kernel: Kernel
    options: Options
    step: Callable[[Cell, str], None]
    processes: Processes = field(default_factory=Processes)
    known: pins.Pins = field(default_factory=pins.load)
    _projects: dict[Backend, Project] = field(default_factory=dict)
    _rendering: threading.Lock = field(default_factory=threading.Lock)

    def request(self, cell: Cell) -> Request:
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
        coverage.require(self.kernel.config, cell)
        project = self._project(cell.backend)
        with _failing_as_tool():
            return self._isolated(cell, project) if self.options.isolation else self._current(cell, project)

    def _project(self, backend: Backend) -> Project:
        with self._rendering:
            if backend not in self._projects:
                self._projects[backend] = render.render(
                    self.kernel,
                    backend,
                    unique_id=self.options.unique_id,
                    allow_unsafe_flags=self.options.allow_unsafe_flags,
                )
            return self._projects[backend]

    def _isolated(self, cell: Cell, project: Project) -> Request:
        requirement = _requirement(cell)
        places = indexes.read(self.options.environ)
        found = interpreters.interpreter_for(
            self.known,
            requirement,
            finders=places,
            preferred=self.options.python,
            search=lambda tag: interpreters.find(tag, finders=places, processes=self.processes),
        )
        wanted = self.known.environment(replace(requirement, python=found.tag))
        beside = header_folders.wheels(self.kernel.config, cell.backend, environ=self.options.environ)
        wanted = replace(wanted, wheels=tuple(sorted((*wanted.wheels, *beside), key=lambda wheel: wheel.name)))
        return Request(cell=cell, project=project, wanted=wanted, python=found.path)

    def _current(self, cell: Cell, project: Project) -> Request:
        found = installed.look(self.options.python)
        name = "tvm_ffi" if cell.framework is Framework.TVM_FFI else "torch"
        site = found.tvm_ffi if cell.framework is Framework.TVM_FFI else found.torch
        if site is None:
            raise NotHereError(
                f"'{found.python}' has no {name}", help=f"install {name} there, or build without --no-isolation"
            )
        if cell.framework is Framework.TORCH and cell.stable_abi is None:
            _fits(cell, torch_identity(site))
        return Request(cell=cell, project=project, wanted=None, python=found.python, installed=site)

    def record(self, request: Request) -> BuildRecord | None:
        """Return the build record, if no environment has to be made to know it.

        Raises:
            NotHereError: this machine lacks something that the cell needs.
            ToolError: a tool failed.
        """
        with _failing_as_tool():
            ingredients = self._remembered(request)
            return (
                None if ingredients is None else self._record(request, ingredients, self._tools(request, ingredients))
            )

    def _remembered(self, request: Request) -> Ingredients | None:
        if request.installed is not None:
            return Ingredients(framework=asdict(_read_identity(request.cell, request.installed)))
        note = self.options.store.note(_note(request))
        if note is None or note.get("builder") != own_code.identity():
            return None
        return Ingredients(framework=note["framework"], cuda=note["cuda"])

    def prepare(self, request: Request) -> Prepared:
        """Make the environment, if it is not there, and return the job and its record.

        Raises:
            NotHereError: this machine lacks something.
        """
        with _failing_as_tool():
            made = None if request.wanted is None else self._make(request, request.wanted)
            site_packages = request.installed if made is None else made.site_packages
            if site_packages is None:
                raise NotHereError(f"{request.cell.variant} has neither pins nor an environment")
            root = self._toolkit_root(request.cell, site_packages)
            tools = self._toolchain(request.cell, root)
            pinned = None if tools is None or tools.cuda is None or root is None else tools.cuda
            ingredients = Ingredients(
                framework=asdict(_read_identity(request.cell, site_packages)),
                cuda=None if pinned is None else {"version": pinned.version, "digest": pinned.digest},
            )
            beside = self._beside(request)
        if made is not None:
            note = {"builder": own_code.identity(), **asdict(ingredients)}
            self.options.store.set_note(_note(request), note)
        job = self._job(request, made, site_packages=site_packages, tools=tools, root=root, beside=beside)
        used = () if made is None else (made.path, *(folder.parents[2] for folder in beside.folders))
        return Prepared(job=job, record=self._record(request, ingredients, tools), environments=used)

    def _make(self, request: Request, wanted: pins.PinSet) -> pinned.Environment:
        return pinned.make(
            wanted,
            store_root=self.options.store.root,
            python=request.python,
            finders=indexes.read(self.options.environ),
            progress=lambda text: self.step(request.cell, text),
            processes=self.processes,
        )

    @property
    def rule(self) -> LoadTestRule:
        """What becomes of a wheel that cannot be imported."""
        return self.options.load_test or self.kernel.config.load_test

    def _beside(self, request: Request) -> Beside:
        """Return what the load test has beside the environment of the build, which it leaves as it is."""
        if self.rule is LoadTestRule.SKIP:
            return Beside()
        cell = request.cell
        kernels = self._kernels(cell)
        if request.wanted is None:
            why = "is what the current environment may lack: install it there"
            return found(self.kernel, cell, wheels=(), kernels=kernels, why=why)
        requirement = replace(_requirement(cell), python=request.wanted.python)
        names = parts(wanted(self.kernel, cell))
        beside = self.known.beside(names, requirement, base=request.wanted)
        folders = () if not beside.wheels else (self._make_beside(request, beside).site_packages,)
        why = f"is not pinned for Python {pins.dotted(requirement.python)} on {cell.system}"
        wheels = (*request.wanted.wheels, *beside.wheels)
        return found(self.kernel, cell, wheels=wheels, folders=folders, kernels=kernels, why=why)

    def _kernels(self, cell: Cell) -> Mapping[str, Path]:
        if not depended(self.kernel, cell.backend):
            return {}
        from builder.engine import at_hand  # noqa: PLC0415  reads wheels, which few kernels need

        return at_hand.kernels(self.kernel, cell, store=self.options.store, output=self.options.output)

    def _make_beside(self, request: Request, beside: pins.PinSet) -> pinned.Environment:
        try:
            return self._make(request, beside)
        except NotHereError as error:
            names = ", ".join(wanted(self.kernel, request.cell))
            raise NotHereError(
                f"the load test needs {names}: {error.message}",
                help=f"{error.help}; or build without the load test, with '--load-test skip'",
            ) from error

    def _toolkit_root(self, cell: Cell, site_packages: Path) -> Path | None:
        root = cuda_wheels.cuda_root(site_packages) if cell.backend is Backend.CUDA else None
        if root is not None:
            cuda_wheels.complete(root)
        return root

    def _tools(self, request: Request, ingredients: Ingredients) -> Toolchain | None:
        """Return the toolchain; an nvcc among the wheels is what its pins say, and need not be there."""
        if ingredients.cuda is None:
            return self._toolchain(request.cell, None)
        host = toolchain.find(Backend.CPU, environ=self.options.environ, digest=self.options.store.digest)
        return replace(host, cuda=Tool(path=Path("nvcc"), **ingredients.cuda))

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

    def _job(
        self,
        request: Request,
        made: pinned.Environment | None,
        *,
        site_packages: Path,
        tools: Toolchain | None,
        root: Path | None,
        beside: Beside,
    ) -> Job:
        options = self.options
        python = request.python if made is None else made.python
        return Job(
            kernel=self.kernel,
            cell=request.cell,
            project=request.project,
            environment=None if made is None else made.path,
            site_packages=site_packages,
            frontend=Path(sys.executable) if made is None else made.python,
            framework_version=_read_identity(request.cell, site_packages).version,
            toolchain=tools,
            toolkit_root=root,
            headers=self._headers(request.cell),
            test_python=python,
            load_test=self.rule,
            beside=beside,
            keeps_bytecode=made is not None,
            wheel=options.wheel,
            epoch=reproducible.epoch_of(options.environ),
            cores=options.limits.cores,
            environ=options.environ,
            pins="" if request.wanted is None else request.wanted.digest,
            experiment=options.experiment,
        )

    def _headers(self, cell: Cell) -> Mapping[str, Path]:
        if cell.noarch:
            return {}
        root = self.options.store.root / "headers"
        return header_folders.fetched(self.kernel.config, cell.backend, environ=self.options.environ, root=root)

    def _record(self, request: Request, ingredients: Ingredients, tools: Toolchain | None) -> BuildRecord:
        options = self.options
        requirements = metadata.requirements(self.kernel.config, request.cell, ingredients.version)
        without = options.experiment.without
        reached = (*REACHES_BUILD, reproducible.SANDBOX_PATHS)
        variables = {name: options.environ[name] for name in reached if options.environ.get(name)}
        variables |= of_build_tools() if request.wanted is None else {}
        if request.installed is not None and python_api.needed_by(request.project):
            variables["python"] = python_of_torch(request.installed)
        variables |= header_folders.digests(self.kernel.config, request.cell.backend, environ=options.environ)
        return BuildRecord(
            builder=own_code.identity(),
            variant=request.cell.variant,
            wheel={
                "version": options.wheel.version or "",
                "label": str(options.wheel.label),
                "policy": options.wheel.policy,
                "requires": ", ".join(requirements),
            },
            project=file_digests(request.project.files),
            framework=ingredients.framework,
            pins="" if request.wanted is None else request.wanted.digest,
            toolchain={} if tools is None else tools.identity,
            environment={
                "SOURCE_DATE_EPOCH": str(reproducible.epoch_of(options.environ)),
                "place": self._place(tools),
                **({"without": " ".join(without)} if without else {}),
                # What is built without one may have what no key sees: it is never taken for what is built in one.
                **({} if self._sealed else {"sandbox": "none"}),
                **variables,
            },
        )

    @property
    def _sealed(self) -> bool:
        return self.options.experiment.has("sandbox") and sandbox.obstacle() is None

    def _place(self, tools: Toolchain | None) -> str:
        canonical = self.options.experiment.has("canonical-path") and (self._sealed or sandbox.available())
        return str(sandbox.CANONICAL) if tools is not None and canonical else ""


@contextlib.contextmanager
def _failing_as_tool() -> Iterator[None]:
    """Let whatever goes wrong here count as a tool's failure; what this machine lacks is a `NotHereError` already."""
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


def _note(request: Request) -> str:
    return f"pins-{request.wanted.digest}-{request.cell.framework}" if request.wanted is not None else ""


def _read_identity(cell: Cell, site_packages: Path) -> FrameworkIdentity:
    read = tvm_ffi_identity if cell.framework is Framework.TVM_FFI else torch_identity
    return read(site_packages)


def _fits(cell: Cell, found: FrameworkIdentity) -> None:
    """Refuse the torch of the current environment for a cell of another one; the stable ABI builds with any."""
    version = found.version.partition("+")[0]
    minor = ".".join(version.split(".", 2)[:2])
    if minor != str(cell.torch):
        raise NotHereError(
            f"{cell.variant} needs torch {cell.torch}; the current environment has {found.version}",
            help=f"install torch {cell.torch}, or build with isolation, or name a cell of torch {minor}",
        )
    fact = _OF_TORCH.get(cell.backend)
    toolkit = found.facts.get(fact or "", "")
    if fact is not None and not _is_release(toolkit, cell.toolkit if cell.backend is not Backend.XPU else None):
        built_for = ", ".join(f"{name} {found.facts[name]}" for name in _OF_TORCH.values() if name in found.facts)
        raise NotHereError(
            f"{cell.variant} needs a torch for {cell.backend} {cell.toolkit}; the current environment has "
            f"{found.version}, which is for {built_for or 'cpu'}",
            help=f"install the build of torch {cell.torch} for {cell.backend} {cell.toolkit}, or build with isolation",
        )


def _is_release(version: str, release: str | None) -> bool:
    """Whether a toolkit is there, and of a release; torch does not say that of oneAPI in its own numbers."""
    return version != "" and (release is None or f"{version}.".startswith(f"{release}."))
