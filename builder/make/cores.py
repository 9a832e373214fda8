"""How the compilers of one build share its cores; the bytes of the wheel do not depend on it."""

from packaging.version import Version

from builder.make.job import Job

_JOBSERVER_SINCE = Version("13.0")
"""The first nvcc that asks a jobserver before it compiles one more architecture."""


def variables(job: Job) -> dict[str, str]:
    """Return the variables that tell ninja and nvcc how much they may run."""
    if job.jobserver:
        # Given a number, ninja would not ask the jobserver.
        return {**job.jobserver, **({"NVCC_APPEND_FLAGS": "--jobserver"} if _nvcc_shares(job) else {})}
    return {} if job.cores is None else {"CMAKE_BUILD_PARALLEL_LEVEL": str(job.cores)}


def nvcc_threads(job: Job) -> int:
    """Return how many architectures of a source nvcc may compile at once.

    If nvcc asks the jobserver, as many as there are cores, since each takes a token; else as many as ninja, with one
    process for each source, would leave idle.
    """
    cores = job.cores or 1
    sources = sum(path.endswith(".cu") for path in job.project.files)
    return cores if _nvcc_shares(job) else max(1, cores // max(1, sources))


def _nvcc_shares(job: Job) -> bool:
    cuda = None if job.toolchain is None else job.toolchain.cuda
    return bool(job.jobserver) and cuda is not None and Version(cuda.version) >= _JOBSERVER_SINCE
