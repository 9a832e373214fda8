"""Which GPUs run a wheel, and in what way: for the page of its kernel, and for the filter of the front page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.audit import gpus
from builder.audit.gpu import GpuCode
from builder.config.gpus import Gpu, known
from builder.errors import BuilderError
from builder.wheel.kernel_wheel import KernelWheel


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuGroup:
    """GPUs that run a wheel in one way."""

    names: str
    way: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """What the device code of a wheel says of GPUs."""

    codes: tuple[GpuCode, ...] = ()
    """What each GPU of its backend runs; nothing where the wheel does not say it."""
    silent: tuple[Gpu, ...] = ()
    """The GPUs of its backend, where the wheel does not say which of them run it."""
    why: str = ""
    """Why it does not."""

    @property
    def running(self) -> tuple[Gpu, ...]:
        """The GPUs that run the wheel, and those of which it does not say that they do not."""
        return (*(code.gpu for code in self.codes if code.runs), *self.silent)

    @property
    def groups(self) -> tuple[GpuGroup, ...]:
        """The GPUs by in what way they run it: those with code of their own first, those without any last."""
        ways: dict[str, list[Gpu]] = {}
        for code in sorted(self.codes, key=_worse):
            ways.setdefault(code.way, []).append(code.gpu)
        return tuple(GpuGroup(names="; ".join(map(said, each)), way=way) for way, each in ways.items())


def read(wheels: Iterable[KernelWheel]) -> Mapping[Path, DeviceCode]:
    """Return what the device code of each wheel says, by the path of the wheel."""
    return {each.wheel.path: _read(each) for each in wheels}


def _read(kernel_wheel: KernelWheel) -> DeviceCode:
    backend = kernel_wheel.variant.backend
    among = tuple(gpu for gpu in known() if gpu.backend is backend)
    if not among:
        return DeviceCode()
    try:
        codes = gpus.of_libraries(kernel_wheel.wheel, backend)
    except BuilderError:
        return DeviceCode(silent=among, why="not known, as its device code cannot be read")
    if not codes:
        return DeviceCode(silent=among, why="not known, as it has no device code of its own")
    return DeviceCode(codes=codes)


def _worse(code: GpuCode) -> tuple[bool, bool, bool]:
    return not code.runs, not code.own, not code.older


def said(gpu: Gpu) -> str:
    """Return a GPU as a person says it: its products, and its architecture."""
    return f"{', '.join(gpu.names)} ({gpu.arch})"
