"""How the compilers of one build share its cores; none of it decides a bit."""

from packaging.version import Version

from builder.build.job import BuildJob

_JOBSERVER_SINCE = Version("13.0")
"""nvcc that asks a jobserver for each further architecture that it compiles."""


def variables(job: BuildJob) -> dict[str, str]:
    """Return the variables that tell ninja and nvcc how much they may run."""
    if job.jobserver:
        # A number of its own would make ninja leave the jobserver alone.
        return {**job.jobserver, **({"NVCC_APPEND_FLAGS": "--jobserver"} if _nvcc_shares(job) else {})}
    return {} if job.cores is None else {"CMAKE_BUILD_PARALLEL_LEVEL": str(job.cores)}


def nvcc_threads(job: BuildJob) -> int:
    """Return how many architectures of a source nvcc may compile at once.

    With a jobserver that it knows as many as there are cores, since each takes a token; else the cores that ninja, with
    a process for each source, leaves idle.
    """
    cores = job.cores or 1
    sources = sum(path.endswith(".cu") for path in job.project.files)
    return cores if _nvcc_shares(job) else max(1, cores // max(1, sources))


def _nvcc_shares(job: BuildJob) -> bool:
    cuda = None if job.toolchain is None else job.toolchain.cuda
    return bool(job.jobserver) and cuda is not None and Version(cuda.version) >= _JOBSERVER_SINCE
