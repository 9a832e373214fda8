"""The load test of a job: the packages that it has, what stands in for a GPU's libraries, and the test itself."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

from builder import run
from builder.build import loadtest, sandbox, standin
from builder.build.job import BuildJob
from builder.build.loadtest.imports import imported
from builder.build.sandbox import contents
from builder.config import Backend, Framework, LoadTestRule
from builder.kernel.source_set import package_directory
from builder.wheel.archive import Wheel, unpack

Listener = Callable[[str], None]


def test(
    job: BuildJob, wheel: Wheel, *, scratch: Path, listen: Listener, processes: run.Processes | None
) -> loadtest.LoadTest:
    """Run the load test of a finished wheel and return its outcome; nothing is refused here."""
    if job.load_test is LoadTestRule.SKIP:
        return loadtest.SKIPPED
    listen("loading")
    installed = scratch / "installed"
    installed.mkdir()
    unpack(wheel, installed)
    package = installed / job.kernel.config.general.name.module
    ops = json.loads((package / "metadata.json").read_text(encoding="utf-8"))["id"]
    libraries = _stand_ins(job, package, scratch / "stand-ins")
    return loadtest.load(
        package,
        ops=ops,
        cell=job.cell,
        python=job.test_python,
        libraries=libraries,
        bytecode=job.keeps_bytecode,
        packages=_packages(job, scratch / "kernel-depends"),
        room=_room(job),
        processes=processes,
    )


def _room(job: BuildJob) -> sandbox.Room | None:
    """Return what a load test sees in its sandbox; None if there is none.

    In a sandbox it cannot write into the environment, so the framework's bytecode is made before, without the kernel.
    """
    if not contents.sealed(job):
        return None
    name = "tvm_ffi" if job.cell.framework is Framework.TVM_FFI else "torch"
    if job.keeps_bytecode and not any((job.site_packages / name / "__pycache__").glob("*.pyc")):
        loadtest.keep_bytecode(name, python=job.test_python, room=contents.of_load_test(job, written=True))
    return contents.of_load_test(job)


def foresee(job: BuildJob, scratch: Path, listen: Listener, processes: run.Processes | None) -> None:
    """Refuse a kernel before it is compiled, where its package imports what its users will not have.

    Raises:
        LoadError: a module is neither here nor declared.
    """
    if job.load_test is not LoadTestRule.REQUIRE or not _strangers(job):
        return
    listen("importing the sources")
    folder = scratch / "sources"
    shutil.rmtree(folder, ignore_errors=True)
    package = folder / job.kernel.config.general.name.module
    for path, content in job.project.files.items():
        if PurePosixPath(path).is_relative_to(package_directory(job.kernel.config)):
            target = package / PurePosixPath(path).relative_to(package_directory(job.kernel.config))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    judged = loadtest.foresee(
        package,
        ops=f"_{package.name}",
        cell=job.cell,
        python=job.test_python,
        libraries=_stand_ins(job, package, scratch / "stand-ins"),
        bytecode=job.keeps_bytecode,
        packages=_packages(job, scratch / "kernel-depends"),
        room=_room(job),
        processes=processes,
    )
    if judged is not None:
        judged.require(job.load_test)


def _strangers(job: BuildJob) -> tuple[str, ...]:
    """Return the modules that the package imports and no folder of its load test seems to have."""
    package = job.kernel.config.general.name.module
    known = {package, "torch", *sys.stdlib_module_names, *job.test_packages.absent}
    folders = (job.site_packages, *job.test_packages.folders)
    known |= {path.name.partition(".")[0] for folder in folders for path in folder.iterdir()}
    files = {path: text for path, text in job.project.files.items() if path.endswith(".py")}
    own = (text for path, text in files.items() if path.startswith(f"{package_directory(job.kernel.config)}/"))
    return tuple(sorted({name for text in own for name in imported(text)} - known))


def _packages(job: BuildJob, folder: Path) -> loadtest.LoadTestPackages:
    """Unpack the kernels that this one depends on, and return all packages of the load test."""
    if not job.test_packages.kernels:
        return job.test_packages
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in job.test_packages.kernels:
        unpack(Wheel.read(path), folder)
    return replace(job.test_packages, folders=(*job.test_packages.folders, folder))


def _stand_ins(job: BuildJob, package: Path, folder: Path) -> tuple[Path, ...]:
    """Return where the loader finds stand-ins for GPU libraries that this machine lacks; they are never called."""
    if job.toolchain is None or job.cell.backend is Backend.CPU:
        return ()
    cuda = job.toolchain.cuda
    search = [job.site_packages / "torch/lib", *sorted(job.site_packages.glob("nvidia/*/lib"))]
    search += [] if cuda is None else [cuda.path.parent.parent / "lib64"]
    # Python loads torch's own module before the kernel's, and that needs libraries which the kernel's does not.
    libraries = [*sorted((job.site_packages / "torch").glob("_C.*.so")), *sorted(package.rglob("*.so"))]
    wanted = standin.missing(libraries, search=tuple(search))
    standin.make(wanted, folder, cc=job.toolchain.cc.path)
    return (folder, *search)
