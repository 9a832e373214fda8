"""Words for the pages, such as CUDA 13.0 for `cu130`, and a kernel's description of itself."""

import re
from collections.abc import Sequence
from functools import cache

from builder import untrusted, wording
from builder.config import Version
from builder.config.gpus import Gpu
from builder.matrix import rows
from builder.matrix.variant import backend_of
from builder.wheel.archive import WheelError
from builder.wheel.kernel_wheel import KernelWheel

ANY_SYSTEM = "any-system"
"""The system of a compute platform that the matrix does not have."""
_SYSTEMS = {
    "x86_64-linux": "Linux x86_64",
    "aarch64-linux": "Linux ARM64",
    "aarch64-darwin": "macOS ARM64",
    "x86_64-darwin": "macOS x86_64",
    "x86_64-windows": "Windows x86_64",
    "aarch64-windows": "Windows ARM64",
    ANY_SYSTEM: "any system",
}
_FRAMEWORK = re.compile(r"(?:torch|apache-tvm-ffi)(?![A-Za-z0-9._-])")
_DOCSTRING = re.compile(r"""(?:[ \t\r\n]|#[^\n]*\n)*[rR]?("{3}|'{3})(.*?)(?:\r?\n[ \t]*\r?\n|\1)""", re.DOTALL)
_LONGEST = 160
_LONGEST_README = 20_000
_BEGINNING = 8192
"""The number of characters at the start of a file that are searched."""


@cache
def compute(name: str) -> str:
    """Return a compute platform in words."""
    title = backend_of(name).facts.title.removeprefix("the ")
    toolkits = [row.toolkit for row in rows() if row.compute == name and row.toolkit is not None]
    return f"{title} {toolkits[0]}" if toolkits else title if title.casefold() == name else f"{title} ({name})"


def system(name: str) -> str:
    """Return a system in words."""
    return _SYSTEMS.get(name, name)


def torches(versions: Sequence[Version], *, among: Sequence[Version]) -> str:
    """Return versions as a range if none is missing between them, `2.12 to 2.14`, and else as a list."""
    first, last = among.index(versions[0]), among.index(versions[-1])
    if len(versions) > 1 and tuple(among[first : last + 1]) == tuple(versions):
        return f"{versions[0]} to {versions[-1]}"
    return ", ".join(map(str, versions))


def value(torch: Version) -> str:
    """Return a torch as addresses spell it."""
    return f"torch{torch.major}{torch.minor}"


def gpu_title(gpu: Gpu) -> str:
    """Return a GPU in words: its products, and its architecture."""
    return f"{', '.join(gpu.names)} ({gpu.arch})"


def summary(kernel_wheel: KernelWheel) -> str:
    """Return the first paragraph of a kernel's docstring, on one line, without running the kernel."""
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
    """Return the README in a wheel's description, as plain text; empty without one."""
    text = kernel_wheel.core.replace(b"\r\n", b"\n").partition(b"\n\n")[2].decode(errors="replace").strip()
    shown = text if len(text) <= _LONGEST_README else f"{text[:_LONGEST_README]}\n…"
    return "\n".join(wording.escaped(line.expandtabs()) for line in shown.split("\n"))


def requires(kernel_wheel: KernelWheel) -> tuple[str, ...]:
    """Return the requirements other than the framework, which differs between wheels."""
    found = map(str, kernel_wheel.fields.get_all("Requires-Dist", []))
    return tuple(requirement for requirement in found if not _FRAMEWORK.match(requirement))
