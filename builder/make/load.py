"""The load test of a job: the packages that it has, what stands in for a GPU's libraries, and the test itself."""

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path, PurePosixPath

from builder import loadtest, run, sandbox
from builder.config import Backend, Framework, LoadTestRule
from builder.errors import BuilderError
from builder.kernel.source_set import rendered_package
from builder.loadtest.packages import imported_modules
from builder.make import sandbox_contents as contents
from builder.make import standin
from builder.make.job import Job
from builder.matrix import extensions_of
from builder.metadata import METADATA_FILE, KernelMetadata
from builder.wheel.archive import Wheel, unpack

Listener = Callable[[str], None]
Core = Callable[[], AbstractContextManager[object]]
"""Says whether a core is free for one more process, and counts that process meanwhile."""


@contextlib.contextmanager
def early(
    job: Job, *, scratch: Path, core: Core, processes: run.Processes | None
) -> Iterator["Future[loadtest.LoadProcess | None] | None"]:
    """Begin the load test of a wheel while it is compiled, where a core is free for that.

    Nearly all of its time is the import of the framework, which has nothing to do with the kernel.
    """
    quick = job.cell.noarch or job.cell.framework is Framework.CTYPES
    never = job.load_test is LoadTestRule.SKIP or job.not_loadable is not None
    with contextlib.ExitStack() as held:
        if quick or never or not held.enter_context(core()):
            yield None
            return
        pool = held.enter_context(ThreadPoolExecutor(max_workers=1))
        begun = pool.submit(_begin, job, scratch, held, processes)
        try:
            yield begun
        finally:
            wait((begun,))


def _begin(
    job: Job, scratch: Path, held: contextlib.ExitStack, processes: run.Processes | None
) -> loadtest.LoadProcess | None:
    """Start the process; what goes wrong here goes wrong again, and is told, when the wheel is there."""
    try:
        _installed(job, scratch).parent.mkdir()
        _stand_ins(job, None, scratch)
        return held.enter_context(loadtest.begun(_setup(job, scratch, processes), early=True))
    except (OSError, BuilderError):
        return None


def test(
    job: Job,
    wheel: Wheel,
    *,
    scratch: Path,
    listen: Listener,
    processes: run.Processes | None,
    early: "Future[loadtest.LoadProcess | None] | None",
) -> loadtest.LoadTest:
    """Run the load test of a finished wheel and return its outcome; nothing is refused here."""
    if job.load_test is LoadTestRule.SKIP:
        return loadtest.SKIPPED
    if job.not_loadable is not None:
        return loadtest.LoadTest(
            outcome=loadtest.LoadState.NOT_TESTED, reason=job.not_loadable.reason, help=job.not_loadable.help
        )
    listen("loading")
    package = _installed(job, scratch)
    package.parent.mkdir(exist_ok=True)
    unpack(wheel, package.parent)
    metadata = KernelMetadata.read((package / METADATA_FILE).read_bytes())
    ops, extensions = str(metadata.ops), metadata.extensions
    begun = None if early is None else early.result()
    _stand_ins(job, package, scratch)
    setup = _setup(job, scratch, processes) if begun is None else begun.setup
    return loadtest.load(setup, ops=ops, extensions=extensions, early=begun)


def _installed(job: Job, scratch: Path) -> Path:
    """Return where the package of the wheel is unpacked."""
    return scratch / "installed" / job.kernel.config.general.name.module


def _setup(job: Job, scratch: Path, processes: run.Processes | None, package: Path | None = None) -> loadtest.Setup:
    """Return what the process has; the package is that of the wheel, where no other is named."""
    return loadtest.Setup(
        package=package or _installed(job, scratch),
        cell=job.cell,
        python=job.test_python,
        runner=() if job.emulator is None else job.emulator.command,
        libraries=_search(job, scratch),
        bytecode=job.keeps_bytecode,
        packages=_packages(job, scratch / "kernel-depends"),
        visible=_visible(job, processes),
        processes=processes,
    )


def _visible(job: Job, processes: run.Processes | None) -> sandbox.SandboxPaths | None:
    """Return what a load test sees in its sandbox; None if there is none.

    In a sandbox it cannot write into the environment, so the framework's bytecode is made before, without the kernel.
    """
    if not contents.sandboxed(job):
        return None
    name = "tvm_ffi" if job.cell.framework is Framework.TVM_FFI else "torch"
    imports = job.cell.framework is not Framework.CTYPES and job.emulator is None
    if imports and job.keeps_bytecode and not any((job.site_packages / name / "__pycache__").glob("*.pyc")):
        visible = contents.of_load_test(job, written=True)
        loadtest.keep_bytecode(name, python=job.test_python, visible=visible, processes=processes)
    return contents.of_load_test(job)


def check_imports(job: Job, scratch: Path, listen: Listener, processes: run.Processes | None) -> None:
    """Refuse a kernel before it is compiled, where its package imports what its users will not have.

    Raises:
        LoadError: a module is neither here nor declared.
    """
    if job.load_test is not LoadTestRule.REQUIRE or job.not_loadable is not None or not _strangers(job):
        return
    listen("importing the sources")
    folder = scratch / "sources"
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / job.kernel.config.general.name.module
    for path, content in _present(job):
        if PurePosixPath(path).is_relative_to(rendered_package(job.kernel.config)):
            target = package / PurePosixPath(path).relative_to(rendered_package(job.kernel.config))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    _stand_ins(job, package, scratch)
    names = extensions_of(job.kernel.config, job.cell, job.options.only)
    judged = loadtest.check_imports(
        _setup(job, scratch, processes, package),
        ops=f"_{package.name}",
        extensions={name: f"_{package.name}_{name}" for name in names},
    )
    if judged is not None:
        judged.require(job.load_test)


def _present(job: Job) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the project without the modules of extensions that the cell leaves out."""
    config = job.kernel.config
    absent = set(config.extension) - set(extensions_of(config, job.cell, job.options.only))
    modules = {f"{rendered_package(config)}/_ops_{name}.py" for name in absent}
    yield from ((path, content) for path, content in job.project.files.items() if path not in modules)


def _strangers(job: Job) -> tuple[str, ...]:
    """Return the modules that the package imports and no folder of its load test seems to have."""
    package = job.kernel.config.general.name.module
    known = {package, *sys.stdlib_module_names, *job.test_packages.absent}
    known |= set() if job.cell.framework is Framework.CTYPES else {"torch"}
    folders = (job.site_packages, *job.test_packages.folders)
    known |= {path.name.partition(".")[0] for folder in folders for path in folder.iterdir()}
    files = {path: text for path, text in job.project.files.items() if path.endswith(".py")}
    own = (text for path, text in files.items() if path.startswith(f"{rendered_package(job.kernel.config)}/"))
    return tuple(sorted({name for text in own for name in imported_modules(text)} - known))


def _packages(job: Job, folder: Path) -> loadtest.LoadTestPackages:
    """Unpack the kernels that this one depends on, and return all packages of the load test."""
    # The interpreter of an environment finds its packages by itself; another one is told.
    packages = job.test_packages
    if job.emulator is not None:
        packages = replace(packages, folders=(job.site_packages, *packages.folders))
    if not packages.kernels:
        return packages
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in job.test_packages.kernels:
        unpack(Wheel.read(path), folder)
    return replace(packages, folders=(*packages.folders, folder))


def _search(job: Job, scratch: Path) -> tuple[Path, ...]:
    """Return where the loader finds GPU libraries that the system lacks: stand-ins, and those of wheels."""
    if job.toolchain is None or job.cell.backend is Backend.CPU:
        return ()
    cuda = job.toolchain.cuda
    search = [job.site_packages / "torch/lib", *sorted(job.site_packages.glob("nvidia/*/lib"))]
    search += [] if cuda is None else [cuda.path.parent.parent / "lib64"]
    return (scratch / "stand-ins", *search)


def libraries(job: Job, package: Path, scratch: Path) -> tuple[Path, ...]:
    """Return where the loader finds what a wheel needs of a GPU's libraries; stand-ins for those that are missing."""
    _stand_ins(job, package, scratch)
    return _search(job, scratch)


def _stand_ins(job: Job, package: Path | None, scratch: Path) -> None:
    """Make stand-ins for GPU libraries that this machine lacks; they are never called."""
    folder, *search = _search(job, scratch) or (scratch,)
    if job.toolchain is None or not search:
        return
    # Python loads torch's own module before the kernel's, and that needs libraries which the kernel's does not.
    libraries = sorted((job.site_packages / "torch").glob("_C.*.so"))
    libraries += [] if package is None else sorted(package.rglob("*.so"))
    libraries += [path for folder in job.test_packages.kernel_folders for path in sorted(folder.rglob("*.so"))]
    wanted = standin.missing(libraries, search=tuple(search))
    standin.make(wanted, folder, cc=job.toolchain.cc.path)
