"""The words of the pages: `cu130` is CUDA 13.0, and a wheel runs on GPUs in one way or another."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from builder import untrusted, wording
from builder.audit import gpus
from builder.audit.gpus import GpuCode
from builder.config import Version
from builder.config.gpus import Gpu, known
from builder.errors import BuilderError
from builder.matrix import rows
from builder.matrix.variant import backend_of
from builder.publish.index.picks import ANY_SYSTEM
from builder.wheel.archive import WheelError
from builder.wheel.kernel_wheel import KernelWheel

Saying = Callable[[str], str]
"""Returns how a person says a value."""

_SYSTEMS = {
    "x86_64-linux": "Linux x86_64",
    "aarch64-linux": "Linux ARM64",
    "aarch64-darwin": "macOS ARM64",
    "x86_64-darwin": "macOS x86_64",
    "x86_64-windows": "Windows x86_64",
    "aarch64-windows": "Windows ARM64",
    ANY_SYSTEM: "any system",
}
_DOCSTRING = re.compile(r"""(?:[ \t\r\n]|#[^\n]*\n)*[rR]?("{3}|'{3})(.*?)(?:\r?\n[ \t]*\r?\n|\1)""", re.DOTALL)
_LONGEST = 160
_LONGEST_README = 20_000
_BEGINNING = 8192
"""The number of characters of a file that are looked at."""


@cache
def compute(name: str) -> str:
    """Return a compute platform as a person says it."""
    title = backend_of(name).facts.title.removeprefix("the ")
    toolkits = [row.toolkit for row in rows() if row.compute == name and row.toolkit is not None]
    return f"{title} {toolkits[0]}" if toolkits else title if title.casefold() == name else f"{title} ({name})"


def system(name: str) -> str:
    """Return a system as a person says it."""
    return _SYSTEMS.get(name, name)


def torches(versions: Sequence[Version], *, among: Sequence[Version]) -> str:
    """Return versions as a range where they have all that is between, `2.12 to 2.14`, and else as a list."""
    first, last = among.index(versions[0]), among.index(versions[-1])
    if len(versions) > 1 and tuple(among[first : last + 1]) == tuple(versions):
        return f"{versions[0]} to {versions[-1]}"
    return ", ".join(map(str, versions))


def value(torch: Version) -> str:
    """Return a torch as addresses spell it."""
    return f"torch{torch.major}{torch.minor}"


def summary(kernel_wheel: KernelWheel) -> str:
    """Return what a kernel says of itself: the first paragraph of its docstring, on one line; it is not run."""
    member = kernel_wheel.package.get("__init__.py")
    if member is None or member.size > untrusted.LARGEST_TEXT:
        return ""
    try:
        found = _DOCSTRING.match(member.read().decode()[:_BEGINNING])
    except (UnicodeDecodeError, WheelError):
        return ""
    text = "" if found is None else wording.escaped(" ".join(found[2].replace("`", "").split()))
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST].rpartition(' ')[0] or text[:_LONGEST]}…"


def description(kernel_wheel: KernelWheel) -> str:
    """Return the README that is the description of a wheel, as plain text; an empty text where it has none."""
    text = kernel_wheel.core.replace(b"\r\n", b"\n").partition(b"\n\n")[2].decode(errors="replace").strip()
    shown = text if len(text) <= _LONGEST_README else f"{text[:_LONGEST_README]}\n…"
    return "\n".join(wording.escaped(line.expandtabs()) for line in shown.split("\n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """The GPUs that run a wheel, by its device code."""

    codes: tuple[GpuCode, ...] = ()
    """The code that each GPU of its backend runs; empty where the wheel does not tell."""
    silent: tuple[Gpu, ...] = ()
    """The GPUs of its backend, where the wheel does not say which of them run it."""
    why: str = ""
    """Why it does not."""

    @property
    def running(self) -> tuple[Gpu, ...]:
        """The GPUs that run the wheel, and those of which it does not say that they do not."""
        return (*(code.gpu for code in self.codes if code.runs), *self.silent)

    @property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """The GPUs with the way in which they run it: first GPUs with code of their own, last those without any."""
        ways: dict[str, list[Gpu]] = {}
        for code in sorted(self.codes, key=_worse):
            ways.setdefault(code.way, []).append(code.gpu)
        return tuple(("; ".join(map(gpu_title, each)), way) for way, each in ways.items())


def device_code(wheels: Iterable[KernelWheel]) -> Mapping[Path, DeviceCode]:
    """Return what the device code of each wheel says, by the path of the wheel."""
    return {each.wheel.path: _code(each) for each in wheels}


def _code(kernel_wheel: KernelWheel) -> DeviceCode:
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


def gpu_title(gpu: Gpu) -> str:
    """Return a GPU as a person says it: its products, and its architecture."""
    return f"{', '.join(gpu.names)} ({gpu.arch})"
