"""The resources that the functions of a wheel's device code take, by architecture, read from its bytes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from builder import codec
from builder.audit import occupancy
from builder.audit.library_members import HEAD, is_library, unpacked
from builder.binary import device_code
from builder.binary.demangled import demangled
from builder.binary.device_image import Image
from builder.binary.elf_file import Data
from builder.binary.extension import Extension
from builder.binary.functions import Function
from builder.config.gpus import known
from builder.errors import BuilderError
from builder.matrix import architectures
from builder.wheel.archive import Wheel
from builder.wording import columns, escaped

_LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A function in a library, compiled for an architecture."""

    library: str
    arch: str
    source_name: str
    """Its name as the source has it."""
    function: Function
    occupancy: Mapping[str, int] = field(default_factory=dict)
    """The percentage of their waves that GPUs keep running, by the architecture of each that runs this code."""

    @property
    def spills(self) -> str:
        """What is spilled, in words; empty where it is nothing."""
        it = self.function
        if it.spilled is not None:
            counts = ((it.spilled, "vector"), (it.spilled_scalars or 0, "scalar"))
            return " and ".join(f"{count} {kind} register{'s' * (count > 1)}" for count, kind in counts if count)
        if it.spill_stores is None or it.spill_loads is None:
            return "not known"
        both = it.spill_stores or it.spill_loads
        return f"{it.spill_stores:,} bytes stored, {it.spill_loads:,} loaded" if both else ""

    @property
    def spilled(self) -> bool:
        """Whether it is known to spill: vector registers of an AMD GPU, whose scalar ones go to vector registers."""
        return bool(self.function.spilled or self.function.spill_stores or self.function.spill_loads)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values."""
        plain = codec.encode(self)
        function = plain.pop("function")
        mangled = function.pop("name")
        return {**plain, "mangled": mangled, **{key: value for key, value in function.items() if value is not None}}


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelResources:
    """The functions of a wheel, by library, architecture and name."""

    functions: tuple[Compiled, ...] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """The libraries whose functions cannot be read, and why."""

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain values."""
        return {"functions": [each.to_dict() for each in self.functions], "unreadable": dict(self.unreadable)}

    @property
    def text(self) -> str:
        """The same for people: a table for each library and architecture."""
        lines = [f"{len(self.functions)} functions of device code"]
        for (library, arch), group in groupby(self.functions, key=lambda each: (each.library, each.arch)):
            lines.append(f"  {escaped(library)}, {arch}")
            rows = [("registers", "shared", "stack", "threads", "occupancy", "spills", "function"), *map(_row, group)]
            lines += [f"    {line}" for line in columns(rows)]
        lines += [f"  {escaped(library)}: {escaped(why)}" for library, why in self.unreadable.items()]
        return "\n".join(lines) + "\n"


def _row(each: Compiled) -> tuple[str, ...]:
    it = each.function
    found = sorted(set(each.occupancy.values()))
    running = "-" if not found else f"{found[0]} %" if len(found) == 1 else f"{found[0]} to {found[-1]} %"
    stack = "no bound" if it.stack is None else f"{it.stack:,}"
    name = each.source_name
    shown = name if len(name) <= _LONGEST_SHOWN else name[: _LONGEST_SHOWN - 1] + "…"
    return (
        str(it.registers),
        f"{it.shared:,}",
        stack,
        str(it.threads or "-"),
        running,
        each.spills or "none",
        escaped(shown),
    )


@dataclass(slots=True)
class Gathering:
    """The functions of libraries, which are read one by one."""

    functions: list[Compiled] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, data: Data) -> None:
        """Read the functions of a library; of one that cannot be read, why."""
        try:
            self.functions += _of_library(name, data)
        except BuilderError as error:
            self.unreadable[name] = error.message

    @property
    def found(self) -> WheelResources:
        """What was read."""
        return WheelResources(functions=tuple(self.functions), unreadable=self.unreadable)


def of(wheel: Wheel) -> WheelResources:
    """Return the functions of a wheel's device code; equal ones of a library and an architecture are one.

    Raises:
        WheelError: a member cannot be unpacked.
    """
    gathering = Gathering()
    for name, member in wheel.members.items():
        if member.size:
            with unpacked(member) as data:
                if is_library(name, data[:HEAD]):
                    gathering.add(name, data)
    return gathering.found


def _of_library(name: str, data: Data) -> Iterator[Compiled]:
    without = Extension.read(name, data).relocatable_device_code
    found = {(image, each) for image, each in device_code.functions(name, data, without=without)}
    names = {mangled: demangled(mangled) for mangled in {each.name for _, each in found}}

    def order(pair: tuple[Image, Function]) -> tuple[object, ...]:
        image, each = pair
        return architectures.natural(image.arch), names[each.name], each.name, each.registers, each.size

    gpus = {image: [gpu.arch for gpu in known() if occupancy.runs(gpu, image)] for image, _ in found}
    for image, each in sorted(found, key=order):
        percents = {arch: percent for arch in gpus[image] if (percent := occupancy.percent(each, arch)) is not None}
        yield Compiled(library=name, arch=image.arch, source_name=names[each.name], function=each, occupancy=percents)
