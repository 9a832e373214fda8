"""Run the load test of a job: collect its packages, make stand-ins for a GPU's libraries, and load the wheel."""

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path, PurePosixPath

from builder import loadtest, sandbox
from builder.config import Backend, Framework, LoadTestRule
from builder.errors import BuilderError
from builder.kernel import called_ops
from builder.kernel.source_set import rendered_package
from builder.loadtest.packages import imported_modules
from builder.make import sandbox_contents as contents
from builder.make import standin
from builder.make.job import Job
from builder.make.workplace import Workplace
from builder.matrix import extensions_of
from builder.metadata import METADATA_FILE, KernelMetadata
from builder.wheel.archive import Wheel, unpack

Core = Callable[[], AbstractContextManager[object]]
"""Tells whether a core is free for one more process, and reserves it meanwhile."""
Early = Future[loadtest.LoadProcess | None]


@contextlib.contextmanager
def early(place: Workplace, *, core: Core) -> Iterator[Early | None]:
    """Start the load test of a wheel during its compilation, if a core is free.

    Most of its time goes into importing the framework, which does not need the kernel.
    """
    job = place.job
    quick = job.cell.noarch or job.cell.framework is Framework.CTYPES
    never = job.load_test is LoadTestRule.SKIP or job.not_loadable is not None
    with contextlib.ExitStack() as held:
        if quick or never or not held.enter_context(core()):
            yield None
            return
        with ThreadPoolExecutor(max_workers=1) as pool:
            yield pool.submit(_begin, place, held)


def _begin(place: Workplace, held: contextlib.ExitStack) -> loadtest.LoadProcess | None:
    """Start the process; an error here occurs again, and is reported, when the wheel is finished."""
    try:
        package = _installed(place)
        package.parent.mkdir()
        setup = _setup(place, package, libraries(place.job, None, place.scratch))
        return held.enter_context(loadtest.begun(setup, early=True))
    except (OSError, BuilderError):
        return None


def test(place: Workplace, wheel: Wheel, *, early: Early | None) -> loadtest.LoadTest:
    """Run the load test of a finished wheel, and return its outcome without refusing anything."""
    job = place.job
    if job.load_test is LoadTestRule.SKIP:
        return loadtest.SKIPPED
    if job.not_loadable is not None:
        return loadtest.LoadTest(
            outcome=loadtest.LoadState.NOT_TESTED, reason=job.not_loadable.reason, help=job.not_loadable.help
        )
    place.listen("loading")
    package = _installed(place)
    package.parent.mkdir(exist_ok=True)
    unpack(wheel, package.parent)
    metadata = KernelMetadata.read((package / METADATA_FILE).read_bytes())
    begun = None if early is None else early.result()
    found = libraries(job, package, place.scratch)
    setup = _setup(place, package, found) if begun is None else begun.setup
    return loadtest.load(setup, ops=str(metadata.ops), extensions=metadata.extensions, named=_named(job), early=begun)


def _named(job: Job) -> frozenset[str] | None:
    """Return the ops that sources of any backend may register; None where not all sources are here to be read."""
    config = job.kernel.config
    if config.sources or config.generate:
        return None
    try:
        return called_ops.named(called_ops.sources(job.kernel))
    except BuilderError:
        return None


def _installed(place: Workplace) -> Path:
    """Return the folder where the wheel's package is unpacked."""
    return place.scratch / "installed" / place.job.kernel.config.general.name.module


def _setup(place: Workplace, package: Path, libraries: tuple[Path, ...]) -> loadtest.Setup:
    """Return the setup of the process, with the kernels unpacked that this kernel depends on."""
    job = place.job
    # An environment's interpreter finds its packages; another interpreter needs their paths.
    packages = job.test_packages
    if job.emulator is not None:
        packages = replace(packages, folders=(job.site_packages, *packages.folders))
    if packages.kernels:
        folder = place.scratch / "kernel-depends"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path in packages.kernels:
            unpack(Wheel.read(path), folder)
        packages = replace(packages, folders=(*packages.folders, folder))
    return loadtest.Setup(
        package=package,
        cell=job.cell,
        python=job.test_python,
        runner=() if job.emulator is None else job.emulator.command,
        libraries=libraries,
        bytecode=job.keeps_bytecode,
        packages=packages,
        visible=_visible(place),
        processes=place.processes,
        scratch=place.scratch,
    )


def _visible(place: Workplace) -> sandbox.SandboxPaths | None:
    """Return the paths that a load test sees in its sandbox; None without a sandbox.

    In a sandbox it cannot write into the environment, so make the framework's bytecode before, without the kernel.
    """
    job = place.job
    if not job.sandboxed:
        return None
    name = "tvm_ffi" if job.cell.framework is Framework.TVM_FFI else "torch"
    imports = job.cell.framework is not Framework.CTYPES and job.emulator is None
    if imports and job.keeps_bytecode and not any((job.site_packages / name / "__pycache__").glob("*.pyc")):
        visible = contents.of_load_test(job, written=True)
        loadtest.keep_bytecode(name, python=job.test_python, visible=visible, processes=place.processes)
    return contents.of_load_test(job)


def check_imports(place: Workplace) -> None:
    """Refuse a kernel before it is compiled, if its package imports a module that users will not have.

    Raises:
        LoadError: a module is neither installed nor declared.
    """
    job, config = place.job, place.job.kernel.config
    if job.load_test is not LoadTestRule.REQUIRE or job.not_loadable is not None or not _strangers(job):
        return
    place.listen("importing the sources")
    folder, rendered = place.scratch / "sources", rendered_package(config)
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / config.general.name.module
    names = extensions_of(config, job.cell, job.options.only)
    absent = {f"{rendered}/_ops_{name}.py" for name in config.extension if name not in names}
    for path, content in job.project.files.items():
        if path not in absent and PurePosixPath(path).is_relative_to(rendered):
            target = package / PurePosixPath(path).relative_to(rendered)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    setup = _setup(place, package, libraries(job, package, place.scratch))
    extensions = {str(name): f"_{package.name}_{name}" for name in names}
    refused = loadtest.check_imports(setup, ops=f"_{package.name}", extensions=extensions)
    if refused is not None:
        refused.require(job.load_test)


def _strangers(job: Job) -> frozenset[str]:
    """Return the imported modules of the package that seem to be in no folder of its load test."""
    rendered = rendered_package(job.kernel.config)
    known = {job.kernel.config.general.name.module, *sys.stdlib_module_names, *job.test_packages.absent}
    known |= set() if job.cell.framework is Framework.CTYPES else {"torch"}
    folders = (job.site_packages, *job.test_packages.folders)
    known |= {path.name.partition(".")[0] for folder in folders for path in folder.iterdir()}
    files = job.project.files.items()
    own = [text for path, text in files if path.endswith(".py") and path.startswith(f"{rendered}/")]
    return frozenset().union(*map(imported_modules, own)) - known


def libraries(job: Job, package: Path | None, scratch: Path) -> tuple[Path, ...]:
    """Return folders with the GPU libraries that the system lacks, from wheels or as stand-ins.

    Stand-ins are made for the libraries that `package` and the framework need, and are never called.
    """
    if job.toolchain is None or job.cell.backend is Backend.CPU:
        return ()
    cuda = job.toolchain.cuda
    packages = [*([] if package is None else [package]), *job.test_packages.kernel_folders]
    more = () if cuda is None else (cuda.path.parent.parent / "lib64",)
    return loader_folders(job.site_packages, packages, scratch, cc=job.toolchain.cc.path, more=more)


def loader_folders(
    site_packages: Path, packages: Iterable[Path], scratch: Path, *, cc: Path, more: tuple[Path, ...] = ()
) -> tuple[Path, ...]:
    """Return folders with the GPU libraries that torch and packages need, from wheels, from `more` or as stand-ins."""
    folder = scratch / "stand-ins"
    search = (site_packages / "torch/lib", *sorted(site_packages.glob("nvidia/*/lib")), *more)
    # Python loads torch's own module first, which needs more libraries than the kernel.
    loaded = sorted((site_packages / "torch").glob("_C.*.so"))
    loaded += [path for package in packages for path in sorted(package.rglob("*.so"))]
    standin.make(standin.missing(loaded, search=search), folder, cc=cc)
    return (folder, *search)
