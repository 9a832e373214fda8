"""The local engine: the cells of kernels, built side by side under one budget."""

import contextlib
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace

from builder.engine.outcome import CellOutcome, Listen, for_kernel
from builder.engine.worker import Shared, Worker
from builder.matrix import Cell
from builder.plan.ask import KernelBuild
from builder.run import Processes

_GRACE = 30.0
"""Most seconds before a time limit at which compilers are told to end."""
_GRACE_SHARE = 0.1
_MOST_CELLS = 16
"""Cells that are prepared at the same time; the budget decides how many compile."""


def build(builds: Sequence[KernelBuild], listen: Listen, *, several: bool = False) -> tuple[CellOutcome, ...]:
    """Build cells of kernels under one budget, side by side, and return the outcome of each, in their order.

    The kernels share what is asked of the machine: the store, its limits, the cache and the time limit. Of `several`,
    events and outcomes say whose they are. Ctrl-C ends every compiler, leaves nothing half-written, and is raised
    again. So does the time limit, but what the compilers have finished stays for the next build.

    Raises:
        StoppedError: the time limit has passed.
        BuilderError: something that all cells share cannot be had, such as the store.
    """
    began = time.monotonic()
    ask = builds[0].ask
    with contextlib.ExitStack() as stack:
        shared = stack.enter_context(Shared.of(ask))
        workers = [
            (Worker.of(build, shared, for_kernel(listen, build.name) if several else listen), build.cells)
            for build in builds
        ]
        count = sum(len(cells) for _, cells in workers)
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=min(_MOST_CELLS, max(1, count))))
        futures = _submit(pool, workers)
        try:
            _wait(futures, shared.processes, deadline=_deadline(began, ask.time_limit))
        except BaseException:
            shared.processes.cancel()
            for future in futures:
                future.cancel()
            raise
    outcomes = shared.cache.noted(future.result() for future in futures)
    whose = [build.name if several else "" for build in builds for _ in build.cells]
    return tuple(replace(outcome, kernel=name) for outcome, name in zip(outcomes, whose, strict=True))


def _submit(pool: ThreadPoolExecutor, workers: Sequence[tuple[Worker, Sequence[Cell]]]) -> list["Future[CellOutcome]"]:
    """Start every cell; one whose load test imports another of the kernels waits for the wheel of that one."""
    if len(workers) == 1:
        return [pool.submit(worker.run, cell) for worker, cells in workers for cell in cells]
    from builder.plan import load_test_needs  # noqa: PLC0415  reads wheels, which few builds need

    started: dict[tuple[int, int], Future[CellOutcome]] = {}
    wheels: dict[tuple[str, str], Future[CellOutcome]] = {}
    for number in load_test_needs.in_order([worker.kernel for worker, _ in workers]):
        worker, cells = workers[number]
        for index, cell in enumerate(cells):
            wanted = load_test_needs.names(worker.kernel, cell)
            awaited = [wheels[name] for name in wanted if name in wheels]
            started[number, index] = pool.submit(_after, awaited, worker, cell)
        module = worker.kernel.config.general.name.module
        wheels |= {(module, cell.variant): started[number, index] for index, cell in enumerate(cells)}
    return [started[each] for each in sorted(started)]


def _after(awaited: Sequence["Future[CellOutcome]"], worker: Worker, cell: Cell) -> CellOutcome:
    """Build a cell when others are done; these began before it, so that no two wait for each other."""
    wait(awaited)
    return worker.run(cell)


def _deadline(began: float, limit: float | None) -> float | None:
    """Return when to stop compilers: early enough to clean up before the limit."""
    return None if limit is None else began + limit - min(_GRACE, limit * _GRACE_SHARE)


def _wait(futures: Iterable["Future[CellOutcome]"], processes: Processes, *, deadline: float | None) -> None:
    """Wait for all in short turns, because Python handles a signal only between two of them."""
    left = set(futures)
    while left:
        if deadline is not None and time.monotonic() > deadline and not processes.cancelled:
            processes.cancel()
        done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
