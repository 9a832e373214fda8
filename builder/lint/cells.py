"""Find bounds and conditions that contradict each other, and backends that no cell of the build matrix serves."""

from collections import Counter
from collections.abc import Iterable, Iterator

from builder.config import Backend, Version
from builder.errors import Problem
from builder.kernel import Kernel
from builder.matrix import Decision, KeyPath, decide, rows, sets_with_cells, without_rows
from builder.matrix.rules import unmet, unmet_of_extension


def bounds(kernel: Kernel) -> Iterator[Problem]:
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
            unmet_of_extension(config, extension, row.backend, row)
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
        reasons = [unmet(part, row) for row in rows() if row.backend is part.backend]
        if part.when is not None and reasons and (reason := reasons[-1]) is not None and None not in reasons:
            yield kernel.source.problem(
                "B131",
                f"the 'when' of component '{name}' holds in no row of the build matrix: no cell has the component",
                path=("kernel", name, "when"),
                severity="warning",
                help=f"for one row, {reason.message}",
            )


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


_RELEASE = "release"


def served_backends(kernel: Kernel) -> Iterator[Problem]:
    """Yield each backend without a cell, or the whole config, with the reason for each candidate row."""
    backends = dict.fromkeys(kernel.config.general.backends)
    release = tuple(row for row in rows() if row.set == _RELEASE)
    decisions = decide(kernel.config, release, unbundled=True)
    candidates = {
        backend: [decision for decision in decisions if decision.row.backend is backend] for backend in backends
    }
    served = {backend for backend, found in candidates.items() if any(decision.cell for decision in found)}
    for backend in backends:
        if not candidates[backend]:
            yield _no_rows(kernel, backend)
        elif backend in served and not any(one.cell.bundle for one in candidates[backend] if one.cell):
            yield _unreleased(kernel, backend)
    starved = {backend: found for backend, found in candidates.items() if found and backend not in served}
    if starved and not served:
        yield _nothing(kernel, [decision for found in starved.values() for decision in found])
    else:
        for backend, found in starved.items():
            yield _starved(kernel, backend, found)


def _no_rows(kernel: Kernel, backend: Backend) -> Problem:
    return kernel.source.problem(
        "B118",
        f"backend '{backend}' has no row in the build matrix: a release has no cell for it",
        path=_backend_path(kernel, backend),
        severity="note",
        help=without_rows(backend) or "`builder matrix --all` shows what other sets have",
    )


def _unreleased(kernel: Kernel, backend: Backend) -> Problem:
    return kernel.source.problem(
        "B118",
        f"backend '{backend}' has no cell in a release, only others",
        path=_backend_path(kernel, backend),
        severity="note",
        help="`builder matrix --all` shows them",
    )


def _starved(kernel: Kernel, backend: Backend, found: list[Decision]) -> Problem:
    elsewhere = _elsewhere(kernel, [backend])
    return kernel.source.problem(
        "B110",
        f"backend '{backend}' is left without a cell\n{_reasons(found)}",
        path=_key_of_most(kernel, found) or _backend_path(kernel, backend),
        help=f"{elsewhere}widen what leaves the rows out, or remove \"{backend}\" from 'general.backends'",
    )


def _nothing(kernel: Kernel, found: list[Decision]) -> Problem:
    return kernel.source.problem(
        "B111",
        f"no cell is left: nothing can be built\n{_reasons(found)}",
        path=_key_of_most(kernel, found) or ("general", "backends"),
        help=f"{_elsewhere(kernel, dict.fromkeys(one.row.backend for one in found))}widen what leaves the rows out",
    )


def _elsewhere(kernel: Kernel, backends: Iterable[Backend]) -> str:
    """Return the sets besides the release that have cells of these backends, as the beginning of a remedy."""
    found = [name for name in sets_with_cells(kernel.config, rows(), backends) if name != _RELEASE]
    return f"build it with {' or '.join(f'`--set {name}`' for name in found)}, " if found else ""


def _reasons(found: list[Decision]) -> str:
    return "\n".join(f"{decision.row}: {decision.message}" for decision in found)


def _key_of_most(kernel: Kernel, found: list[Decision]) -> KeyPath | None:
    """Return the key that leaves most of the rows out, where the file has it."""
    keys = Counter(decision.key for decision in found if decision.key and kernel.source.has(decision.key))
    return keys.most_common(1)[0][0] if keys else None


def _backend_path(kernel: Kernel, backend: Backend) -> tuple[str | int, ...]:
    return ("general", "backends", kernel.config.general.backends.index(backend))
