"""Find qemu, which runs programs of another processor, with the files of a root folder for that processor."""

from dataclasses import dataclass
from pathlib import Path

from builder.errors import NotHereError
from builder.matrix.variant import dotted
from builder.toolchain.tool import Search, installing

ROOT = "QEMU_LD_PREFIX"
"""The variable that names the root; qemu reads it as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulator:
    """A program that runs programs of another processor, and the paths of their Python, loader and libraries."""

    program: Path
    root: Path
    python: Path

    @property
    def command(self) -> tuple[str, ...]:
        """The words before a program in the root."""
        return str(self.program), "-L", str(self.root)


def find(search: Search, target: str, *, python: str) -> Emulator:
    """Return an emulator for a Python, such as `cp311`, of the system `target`.

    Raises:
        NotHereError: there is no qemu, or no root with this Python; the message says how to get it.
    """
    name = f"qemu-{target.partition('-')[0]}"
    program = search.which(f"{name}-static") or search.which(name)
    if program is None:
        raise NotHereError(f"no {name} is on PATH", help=installing("qemu"))
    root = Path(search.environ.get(ROOT) or "/nonexistent")
    interpreter = root / "usr/bin" / f"python{dotted(python)}"
    if not root.is_absolute() or not interpreter.is_file():
        raise NotHereError(
            f"{ROOT} names no folder with the Python {dotted(python)} of {target}",
            help=f"name a root of {target} there, such as an unpacked image that has usr/bin/python{dotted(python)}",
        )
    return Emulator(program=program, root=root, python=interpreter)
