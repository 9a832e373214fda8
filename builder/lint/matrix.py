"""Backends that no cell of the build matrix serves."""

from collections import Counter
from collections.abc import Iterable, Iterator

from builder.config import Backend
from builder.errors import Problem
from builder.kernel import Kernel
from builder.matrix import Decision, KeyPath, decide, rows, sets_with_cells, without_rows

_RELEASE = "release"


def check(kernel: Kernel) -> Iterator[Problem]:
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
        path=_place(kernel, found) or _backend_path(kernel, backend),
        help=f"{elsewhere}widen what leaves the rows out, or remove \"{backend}\" from 'general.backends'",
    )


def _nothing(kernel: Kernel, found: list[Decision]) -> Problem:
    return kernel.source.problem(
        "B111",
        f"no cell is left: nothing can be built\n{_reasons(found)}",
        path=_place(kernel, found) or ("general", "backends"),
        help=f"{_elsewhere(kernel, dict.fromkeys(one.row.backend for one in found))}widen what leaves the rows out",
    )


def _elsewhere(kernel: Kernel, backends: Iterable[Backend]) -> str:
    """Return the sets besides the release that have cells of these backends, as the beginning of a remedy."""
    found = [name for name in sets_with_cells(kernel.config, rows(), backends) if name != _RELEASE]
    return f"build it with {' or '.join(f'`--set {name}`' for name in found)}, " if found else ""


def _reasons(found: list[Decision]) -> str:
    return "\n".join(f"{decision.row}: {decision.message}" for decision in found)


def _place(kernel: Kernel, found: list[Decision]) -> KeyPath | None:
    """Return the key that leaves most of the rows out, where the file has it."""
    keys = Counter(decision.key for decision in found if decision.key and kernel.source.has(decision.key))
    return keys.most_common(1)[0][0] if keys else None


def _backend_path(kernel: Kernel, backend: Backend) -> tuple[str | int, ...]:
    return ("general", "backends", kernel.config.general.backends.index(backend))
