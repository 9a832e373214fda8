"""Judge a stranger's wheel in a separate process, which the system stops if it takes too much time or memory.

The readers limit everything that a file can contain too much of; this process catches what they do not foresee.
"""

import contextlib
import json
import os
import resource
import signal
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from builder import codec, json_text, terminal
from builder.audit import BUDGET, CHECKS, gpus, hub_layout, judge, reading
from builder.audit.gpus import GpuCode
from builder.audit.report import AuditReport, Finding
from builder.audit.resources import Gathering, WheelResources
from builder.audit.sizes import WheelSizes
from builder.audit.sizes import of as sizes_of
from builder.audit.subject import AuditPromise
from builder.errors import BugError, BuilderError
from builder.wheel.archive import Wheel, WheelError

_SECONDS = 4
_BYTES_A_SECOND = 8 << 20
"""Bytes of a wheel for which it gets another second; 200 MB of device code take a second, but symbols are slower."""
_MEMORY = 224 << 20
"""For the heap of Python: a library is mapped, and the size of the wheel limits its size."""
_SIZE_FACTOR = 2
_STATUS = Path("/proc/self/status")
_BUG, _NO_MEMORY = 1, 3
"""Exit codes of the child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The result of judging a wheel, and the code that GPUs run."""

    report: AuditReport
    gpus: tuple[GpuCode, ...] = ()
    """The code that each GPU of its backend runs; empty for a backend without device code."""
    sizes: WheelSizes | None = None
    """The sizes of its parts, where they were asked for."""
    resources: WheelResources | None = None
    """The resources of its functions, where they were asked for."""


def run(wheel: Wheel, *, with_resources: bool = False) -> Judged:
    """Judge a wheel by what it says of itself; say what its functions take where that is asked for.

    Raises:
        WheelError: the file is damaged.
    """
    subject = reading.read(wheel, plan=AuditPromise(), functions=Gathering() if with_resources else None)
    report = AuditReport(wheel=wheel.path.name, rules=tuple(CHECKS), findings=judge(subject))
    return Judged(report=report, gpus=gpus.of(subject), resources=subject.resources if with_resources else None)


class CostlyError(Exception):
    """A wheel that takes more to read than a wheel of its size may."""

    def __init__(self, what: str, allowed: str) -> None:
        super().__init__(f"to judge it takes more {what} than a wheel of its size may: {allowed}")
        self.what = what


def run_limited(path: Path, *, sizes: bool = False, with_resources: bool = False) -> Judged:
    """Judge a wheel, or a variant of a hub layout; one that costs more than its size allows has a finding.

    Raises:
        WheelError: the file is damaged, or is not a wheel.
    """
    try:
        return codec.decode(Judged, answered(path, partial(_audited, path, sizes=sizes, with_resources=with_resources)))
    except CostlyError as error:
        remedy = "build it again; a wheel that was built by `builder build` takes a fraction of that"
        finding = Finding(path.name, BUDGET, error.what, str(error), remedy)
        return Judged(report=AuditReport(wheel=path.name, rules=tuple(CHECKS), findings=(finding,)))


def answered(path: Path, work: Callable[[], object]) -> Any:
    """Return, as JSON values, the dataclass that `work` reads of a wheel or a variant in a limited process.

    Raises:
        CostlyError: it takes more processor time or memory than the size of the wheel allows.
        WheelError: `work` raises an error.
    """
    try:
        size = hub_layout.size_of(path) if hub_layout.is_folder(path) else path.stat().st_size
    except OSError:
        size = 0  # the child reports the error
    seconds, memory = _SECONDS + size // _BYTES_A_SECOND, _MEMORY + _SIZE_FACTOR * size
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # Python warns if there are threads; but the child takes none of their locks, and exits without clean-up.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(reader)
        _work(work, writer, seconds=seconds, memory=memory)
    os.close(writer)
    code, text = _answer(reader, child)
    if code == _BUG:
        raise BugError("the process that judged the wheel failed by a mistake of its own")
    if code != 0:
        timed_out = code == -signal.SIGXCPU
        raise CostlyError(*("processor time", f"{seconds} s") if timed_out else ("memory", f"{memory >> 20} MiB"))
    answer = json.loads(text)
    if "error" in answer:
        raise WheelError(answer["error"], help=answer["help"])
    return answer["read"]


def _work(work: Callable[[], object], writer: int, *, seconds: int, memory: int) -> None:
    """Write the answer of the child and end it, without running the parent's exit handlers."""
    code = _BUG
    try:
        _limit(resource.RLIMIT_CPU, seconds)
        _limit(resource.RLIMIT_DATA, _held() + memory)
        _limit(resource.RLIMIT_CORE, 0)
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        with os.fdopen(writer, "w", encoding="ascii") as stream:
            stream.write(json_text.line(_read(work)))
        code = 0
    except MemoryError:
        code = _NO_MEMORY
    except KeyboardInterrupt:
        code = _NO_MEMORY  # the parent lacks memory as well, and does not read the answer
    finally:
        if code == _BUG:
            terminal.err(traceback.format_exc().rstrip())
        os._exit(code)


def _read(work: Callable[[], object]) -> dict[str, Any]:
    try:
        return {"read": codec.encode(work())}
    except BuilderError as error:
        return {"error": error.message, "help": error.help}


def _held() -> int:
    """Return the bytes of data that this process inherited from its parent; 0 if the system does not tell."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = _STATUS.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))
    return 0


def _limit(kind: int, value: int) -> None:
    """Lower a limit, unless it is already lower."""
    _, hard = resource.getrlimit(kind)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _audited(path: Path, *, sizes: bool, with_resources: bool) -> Judged:
    if hub_layout.is_folder(path):
        return _of_variant(path, with_resources=with_resources)
    wheel = Wheel.read(path)
    judged = run(wheel, with_resources=with_resources)
    return replace(judged, sizes=sizes_of(wheel)) if sizes else judged


def _of_variant(folder: Path, *, with_resources: bool) -> Judged:
    """Judge a variant as a wheel, and name its files as they lie in the layout."""
    wheel = hub_layout.read_variant(folder)
    judged = run(wheel, with_resources=with_resources)
    module, name = f"{wheel.path.name.partition('-')[0]}/", folder.name
    findings = (
        replace(each, file=f"{name}/{each.file.removeprefix(module)}") if each.file.startswith(module) else each
        for each in judged.report.findings
    )
    return replace(judged, report=replace(judged.report, wheel=str(folder), findings=tuple(findings)))


def _answer(reader: int, child: int) -> tuple[int, str]:
    """Return the exit code of the child, and its answer."""
    try:
        with os.fdopen(reader, encoding="ascii") as stream:
            text = stream.read()
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    return os.waitstatus_to_exitcode(status), text
