"""Versions that contradict each other."""

from collections.abc import Iterator

from builder.config import Backend, Version
from builder.config.source_tables import Component
from builder.errors import Problem
from builder.kernel import Kernel
from builder.matrix import Row, rows
from builder.matrix.rules import Place, minor, unmet, unmet_of_extension


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield bounds that leave nothing between them."""
    config, source = kernel.config, kernel.source
    if config.torch is not None:
        yield from _crossed(kernel, ("torch",), config.torch.minver, config.torch.maxver)
    if config.general.cuda is not None:
        yield from _crossed(kernel, ("general", "cuda"), config.general.cuda.minver, config.general.cuda.maxver)
    yield from _stable_abi(kernel)
    yield from _conditions(kernel)
    toolkits = [Version(row.toolkit) for row in rows() if row.backend is Backend.CUDA and row.toolkit is not None]
    for name, component in config.components(Backend.CUDA).items():
        minver = getattr(component, "cuda_minver", None)
        if minver is not None and all(toolkit < minver for toolkit in toolkits):
            yield source.problem(
                "B123",
                f"'cuda-minver' {minver} is above every CUDA of the build matrix: no cell has the component",
                path=("kernel", name, "cuda-minver"),
                severity="warning",
                help=f"the newest is {max(toolkits)}",
            )


def _conditions(kernel: Kernel) -> Iterator[Problem]:
    """Find conditions that hold in no cell of the whole matrix."""
    config = kernel.config
    for extension, table in config.extension.items():
        whys = [
            unmet_of_extension(config, extension, row.backend, _place(row))
            for row in rows()
            if extension in config.extensions(row.backend)
        ]
        if table.when is not None and whys and (why := whys[-1]) is not None and None not in whys:
            yield kernel.source.problem(
                "B131",
                f"the 'when' of extension '{extension}' holds in no row of the build matrix: no wheel has it",
                path=("extension", extension, "when"),
                severity="warning",
                help=f"for one row, {why.message}",
            )
    for name, part in kernel.config.kernel.items():
        reasons = [_why_not(part, row) for row in rows() if row.backend is part.backend]
        if part.when is not None and reasons and all(reasons):
            yield kernel.source.problem(
                "B131",
                f"the 'when' of component '{name}' holds in no row of the build matrix: no cell has the component",
                path=("kernel", name, "when"),
                severity="warning",
                help=f"for one row, {reasons[-1]}",
            )


def _why_not(part: Component, row: Row) -> str:
    why = unmet(part, _place(row))
    return "" if why is None else why.message


def _place(row: Row) -> Place:
    toolkit = None if row.toolkit is None else minor(row.toolkit)
    return Place(toolkit=toolkit, torch=row.torch, system=row.system)


def _crossed(kernel: Kernel, table: tuple[str, ...], low: Version | None, high: Version | None) -> Iterator[Problem]:
    if low is not None and high is not None and high < low:
        yield kernel.source.problem(
            "B106",
            f"'minver' {low} is above 'maxver' {high}",
            path=(*table, "minver"),
            severity="warning",
            help="both bounds are inclusive: exchange them, or remove one",
        )


def _stable_abi(kernel: Kernel) -> Iterator[Problem]:
    torch = kernel.config.torch
    stable = None if torch is None else torch.stable_abi
    maxver = None if torch is None else torch.maxver
    if isinstance(stable, Version):
        yield from _above(kernel, ("torch", "stable-abi"), stable, maxver)
        return
    for backend, version in ({} if stable is None else stable).items():
        path = ("torch", "stable-abi", backend.value)
        if backend in kernel.config.general.backends:
            yield from _above(kernel, path, version, maxver)
        else:
            yield kernel.source.problem(
                "B108",
                f"'stable-abi' for backend '{backend}', which is not in 'general.backends'",
                path=path,
                severity="warning",
                help=f"add \"{backend}\" to 'general.backends', or remove the entry",
            )


def _above(kernel: Kernel, path: tuple[str, ...], stable: Version, maxver: Version | None) -> Iterator[Problem]:
    if maxver is not None and maxver < stable:
        yield kernel.source.problem(
            "B107",
            f"'stable-abi' {stable} is above 'maxver' {maxver}",
            path=path,
            severity="warning",
            help=f"target a stable ABI of at most {maxver}, or raise 'maxver'",
        )
