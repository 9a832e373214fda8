"""The local engine: build cells in parallel, sharing one budget."""

import contextlib
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from builder.engine.outcome import CellOutcome, Listen
from builder.engine.worker import Shared, Worker
from builder.matrix import Cell
from builder.plan.ask import KernelBuild
from builder.run import Processes

_GRACE = 30.0
"""The most seconds before a time limit at which compilers are told to end."""
_GRACE_SHARE = 0.1
_MOST_CELLS = 16
"""The number of cells in preparation at the same time; the budget decides how many compile."""


def build(builds: Sequence[KernelBuild], listen: Listen) -> tuple[CellOutcome, ...]:
    """Build the cells of kernels in parallel under one budget, and return their outcomes in order.

    The kernels share the store, the limits, the cache and the time limit. Ctrl-C ends every compiler, leaves nothing
    half-written, and is raised again. The time limit does the same, but keeps the compiled files for the next build.

    Raises:
        StoppedError: the time limit has passed.
        BuilderError: something that all cells share is not available, such as the store.
    """
    ask, began = builds[0].ask, time.monotonic()
    limit = ask.time_limit
    deadline = None if limit is None else began + limit - min(_GRACE, limit * _GRACE_SHARE)
    with contextlib.ExitStack() as stack:
        shared = stack.enter_context(Shared.of(ask))
        workers = [Worker.of(build, shared, listen) for build in builds]
        count = sum(len(build.cells) for build in builds)
        pool = stack.enter_context(ThreadPoolExecutor(max_workers=min(_MOST_CELLS, max(1, count))))
        futures = _submit(pool, workers)
        try:
            _wait(futures, shared.processes, deadline=deadline)
        except BaseException:
            shared.processes.cancel()
            for future in futures:
                future.cancel()
            raise
    return shared.cache.noted(future.result() for future in futures)


def _submit(pool: ThreadPoolExecutor, workers: Sequence[Worker]) -> list["Future[CellOutcome]"]:
    """Start every cell; if its load test imports another of the kernels, the cell waits for that kernel's wheel."""
    if len(workers) == 1:
        return [pool.submit(worker.run, cell) for worker in workers for cell in worker.build.cells]
    from builder.plan import load_test_needs  # noqa: PLC0415  reads wheels, which few builds need

    started: dict[tuple[int, int], Future[CellOutcome]] = {}
    wheels: dict[tuple[str, str], Future[CellOutcome]] = {}
    for number in load_test_needs.in_order([worker.build.kernel for worker in workers]):
        worker = workers[number]
        kernel, cells = worker.build.kernel, worker.build.cells
        for index, cell in enumerate(cells):
            awaited = [wheels[name] for name in load_test_needs.names(kernel, cell) if name in wheels]
            started[number, index] = pool.submit(_after, awaited, worker, cell)
        module = kernel.config.general.name.module
        wheels |= {(module, cell.variant): started[number, index] for index, cell in enumerate(cells)}
    return [started[each] for each in sorted(started)]


def _after(awaited: Sequence["Future[CellOutcome]"], worker: Worker, cell: Cell) -> CellOutcome:
    """Build a cell after others are done; these started before it, so no two wait for each other."""
    wait(awaited)
    return worker.run(cell)


def _wait(futures: Iterable["Future[CellOutcome]"], processes: Processes, *, deadline: float | None) -> None:
    """Wait for all cells in short intervals, because Python handles a signal only between two waits."""
    left = set(futures)
    while left:
        if deadline is not None and time.monotonic() > deadline and not processes.cancelled:
            processes.cancel()
        done, left = wait(left, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
