"""GPUs that `[require]` names and that some cell has no code for."""

from collections.abc import Iterator

from builder.errors import Problem
from builder.kernel import Kernel
from builder.matrix import coverage, rows, select


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield each of them, once for each reason."""
    required = kernel.config.require
    if required is None:
        return
    cells = select(kernel.config, rows(), unbundled=True)
    found = dict.fromkeys(each for cell in cells for each in coverage.unserved(kernel.config, cell))
    for name, why in found:
        yield kernel.source.problem(
            "B147",
            f"{why}: such a wheel is refused",
            path=("require", "gpus", required.gpus.index(name)),
            help=f"add '{name.gpu.arch}' to the architectures of each component that it is to run",
        )
