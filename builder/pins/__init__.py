"""The pin file: the wheels of every build environment, each named by its hash."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from builder import codec, json_text, resources, toml
from builder.config import Backend, Framework, Version
from builder.errors import NotHereError
from builder.hashes import sha256
from builder.matrix import Cell
from builder.matrix.variant import built_systems, dotted
from builder.pins import pin_file

FILE = resources.DATA / "pins.toml"
_ONE_PYTHON = re.compile(r"cp3[0-9]+t?")
_HEADER = """\
# The wheels of every build environment: read by builder/pins/pin_file.py and builder/nix/pins.nix, written by
# `builder pins update`, which resolves the `requires` of each part and keeps what it cannot reach.
#
# pythons       the Pythons that are resolved
# environment   for each kind of cell the parts that make its environment, `name` or `name/compute`;
#               of several lists the first that is pinned for the Python and system counts
# part          files by system and Python (`any`: whatever the Python). `version` and `compute` say which cells
#               it serves (all, when absent), `only` what is kept of what was resolved, and `index` where the
#               files are published when that is not the default index. Nothing required, nothing to pin.
# wheel         what each file is, once
"""


class MissingPinsError(NotHereError):
    """No environment is pinned for a requirement; `pythons` has the Pythons that have one."""

    def __init__(self, message: str, *, pythons: tuple[str, ...] = ()) -> None:
        remedy = "add them with `builder pins update` where the index of these wheels can be reached"
        if pythons:
            remedy = f"use Python {' or '.join(map(dotted, pythons))}, which have pins"
        super().__init__(message, help=f"{remedy}, or build against an installed torch with --no-isolation")
        self.pythons = pythons


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedWheel:
    """One file, the same wherever it comes from."""

    file: str
    name: str
    version: str
    sha256: str
    index: str | None = field(default=None, metadata=codec.spelled(sparse=True))
    """The index that publishes it, unless that is the default one."""

    @property
    def python(self) -> str | None:
        """The one Python that can import it, such as `cp311`; None where several can."""
        abi = self.file.split("-")[-2]
        return abi if _ONE_PYTHON.fullmatch(abi) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The purpose of an environment; `version` is the framework's, as a cell has it, and empty for a plain library."""

    framework: Framework
    version: str
    compute: str
    python: str
    system: str
    stable_abi: bool = False

    @property
    def recipe(self) -> str:
        """The key of `[environment]` that says which parts to take."""
        stable = "-stable" if self.stable_abi else ""
        noarch = self.framework is Framework.TORCH_NOARCH
        cuda = "-cuda" if not noarch and self.compute.rstrip("0123456789") == Backend.CUDA.facts.toolkit_prefix else ""
        return f"{self.framework.value}{stable}{cuda}"

    def __str__(self) -> str:
        stable = " (stable ABI)" if self.stable_abi else ""
        version = f" {self.version}" if self.version else ""
        return f"{self.framework.value}{version} {self.compute}{stable} on {self.system}"

    @classmethod
    def of(cls, cell: Cell, python: str) -> "Requirement":
        """Return what `cell` needs when `python`, such as `cp311`, builds it."""
        tvm_ffi = cell.framework is Framework.TVM_FFI
        return cls(
            framework=cell.framework,
            version="" if cell.framework is Framework.CTYPES else str(cell.tvm_ffi if tvm_ffi else cell.torch),
            compute=cell.compute,
            python=python,
            system=cell.system,
            stable_abi=cell.stable_abi is not None,
        )


@dataclass(frozen=True)
class PinSet:
    """The wheels of one environment, sorted by name."""

    python: str
    system: str
    wheels: tuple[PinnedWheel, ...]

    @cached_property
    def digest(self) -> str:
        """The sha256 of what is installed, from whichever index it came."""
        return sha256(self.to_json())

    def to_json(self) -> str:
        """Spell the set canonically: one text for one content."""
        wheels = [
            {"file": wheel.file, "name": wheel.name, "sha256": wheel.sha256, "version": wheel.version}
            for wheel in self.wheels
        ]
        content = {"python": self.python, "system": self.system, "wheels": wheels}
        return json_text.document(content, indent=1, ordered=True)

    @property
    def other_pythons(self) -> tuple[str, ...]:
        """The Pythons, other than that of the environment, that some of its wheels are for."""
        return tuple(sorted({wheel.python or self.python for wheel in self.wheels} - {self.python}))

    def __getitem__(self, name: str) -> PinnedWheel:
        for wheel in self.wheels:
            if wheel.name == name:
                return wheel
        raise KeyError(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Wheels that belong together; the parts of an environment are pinned side by side."""

    name: str
    about: str
    requires: tuple[str, ...]
    """The requirements that `builder pins update` resolves; empty for a part that comes from the machine."""
    version: str | None = None
    compute: tuple[str, ...] = ()
    index: str | None = None
    only: tuple[str, ...] = ()
    """The packages to keep of what was resolved; all of them when empty."""
    wheels: Mapping[str, Mapping[str, tuple[str, ...]]]
    """Files by system and Python tag."""

    def serves(self, reference: str, requirement: Requirement) -> bool:
        """Whether `reference`, such as `torch/cpu`, means this part for a requirement."""
        name, _, compute = reference.partition("/")
        return (
            self.name == name
            and self.version in (None, requirement.version)
            and (not self.compute or (compute or requirement.compute) in self.compute)
        )

    def files(self, system: str, python: str) -> tuple[str, ...] | None:
        """Return the files for a Python on a system, or None where nothing is pinned."""
        if not self.requires:
            return ()
        of_system = self.wheels.get(system, {})
        return of_system.get(python, of_system.get(pin_file.ANY, ())) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The whole file."""

    pythons: tuple[str, ...]
    recipes: Mapping[str, tuple[tuple[str, ...], ...]]
    """For each kind of environment the lists of parts that make one; the first that is pinned counts."""
    parts: tuple[Part, ...]
    wheels: Mapping[str, PinnedWheel]

    def environment(self, requirement: Requirement, *, any_python: bool = False) -> PinSet:
        """Return the wheels a build of `requirement` needs.

        A build that compiles nothing against Python may take `any_python`: where a part is not pinned for that of
        `requirement`, its wheels are those for the newest Python that it is pinned for. The build takes headers and
        libraries from them, and imports nothing.

        Raises:
            MissingPinsError: some part is not pinned for this Python and system.
        """
        found = self._find(requirement, self.pythons if any_python else ())
        if found is not None:
            return found
        pythons = self.pinned_pythons(requirement)
        python = f" with Python {dotted(requirement.python)}" if pythons else ", with any Python"
        raise MissingPinsError(f"no wheels are pinned for {requirement}{python}", pythons=pythons)

    def additional(self, names: tuple[str, ...], requirement: Requirement, *, base: PinSet) -> PinSet:
        """Return the wheels of parts that `base` lacks, as far as they are pinned."""
        files = (file for name in names for file in sorted(self._files((name,), requirement) or ()))
        found = {wheel.name: wheel for wheel in map(self.wheels.__getitem__, files)}
        have = {wheel.name for wheel in base.wheels}
        wheels = sorted((wheel for wheel in found.values() if wheel.name not in have), key=lambda wheel: wheel.name)
        return PinSet(base.python, base.system, tuple(wheels))

    def pinned_pythons(self, requirement: Requirement) -> tuple[str, ...]:
        """Return the Pythons for which the same requirement is pinned."""
        return tuple(python for python in self.pythons if self._find(replace(requirement, python=python)) is not None)

    def need(self, cell: Cell) -> Requirement:
        """Return what the environment of a cell is for, before a Python is chosen."""
        requirement = Requirement.of(cell, "")
        return self.of_plain_torch(requirement) if cell.noarch else requirement

    def of_plain_torch(self, requirement: Requirement) -> Requirement:
        """Return what loads a wheel without code: torch for the CPU, in its own version or the newest that is pinned.

        That of a GPU does not import without the libraries it runs on; it is taken where no other is pinned.
        """
        versions = sorted({Version(part.version) for part in self.parts if part.version is not None}, reverse=True)
        plain = (
            replace(requirement, version=version, compute="cpu")
            for version in (requirement.version, *map(str, versions))
        )
        return next(filter(self.pinned_pythons, plain), requirement)

    def requirements(self) -> Iterator[Requirement]:
        """Yield every requirement for which an environment is pinned."""
        versions = dict.fromkeys(part.version for part in self.parts if part.version is not None)
        computes = dict.fromkeys(compute for part in self.parts for compute in part.compute)
        ways = product(Framework, ("", *versions), computes, built_systems(), (False, True), self.pythons)
        for framework, version, compute, system, stable_abi, python in ways:
            if (framework is Framework.CTYPES) != (version == ""):
                continue
            requirement = Requirement(
                framework=framework,
                version=version,
                compute=compute,
                python=python,
                system=system,
                stable_abi=stable_abi,
            )
            if self._find(requirement) is not None:
                yield requirement

    def conflicts(self) -> Iterator[str]:
        """Name each environment that would have two versions of one package."""
        for requirement in self.requirements():
            names = [wheel.name for wheel in self.environment(requirement).wheels]
            for name in sorted({name for name in names if names.count(name) > 1}):
                yield f"{requirement} with Python {dotted(requirement.python)}: {name}"

    def _find(self, requirement: Requirement, others: tuple[str, ...] = ()) -> PinSet | None:
        """Return the first recipe that is pinned for the Python, or each part for the newest of `others`."""
        for recipe in self.recipes.get(requirement.recipe, ()):
            files = self._files(recipe, requirement, others)
            if files is not None:
                wheels = sorted((self.wheels[file] for file in files), key=lambda wheel: wheel.name)
                return PinSet(requirement.python, requirement.system, tuple(wheels))
        return None

    def _files(
        self, recipe: tuple[str, ...], requirement: Requirement, others: tuple[str, ...] = ()
    ) -> frozenset[str] | None:
        files: set[str] = set()
        pythons = (requirement.python, *reversed(others))
        for reference in recipe:
            parts = [part for part in self.parts if part.serves(reference, requirement)]
            candidates = (part.files(requirement.system, python) for python in pythons for part in parts)
            own = next((found for found in candidates if found is not None), None)
            if own is None:
                return None
            files.update(own)
        return frozenset(files)


def load(file: Path = FILE) -> Pins:
    """Read the pin file; a pin without a proper hash is refused before anything runs.

    Raises:
        PinsError: all that is wrong with the file.
    """
    table = pin_file.read(file)
    indexes = {
        file: part["index"]
        for part in table["part"]
        if "index" in part
        for of_system in part.get("wheels", {}).values()
        for files in of_system.values()
        for file in files
    }
    wheels = table["wheel"].items()
    return Pins(
        pythons=tuple(table["pythons"]),
        recipes={kind: tuple(map(tuple, recipes)) for kind, recipes in table["environment"].items()},
        parts=tuple(_part(part) for part in table["part"]),
        wheels={file: PinnedWheel(file=file, **facts, index=indexes.get(file)) for file, facts in wheels},
    )


def _part(table: dict[str, Any]) -> Part:
    wheels = {
        system: {python: tuple(files) for python, files in of_system.items()}
        for system, of_system in table.get("wheels", {}).items()
    }
    facts: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in table.items()}
    return Part(**{**facts, "wheels": wheels})


def to_toml(pins: Pins) -> str:
    """Spell the pins as their file: one text for one content."""
    lines = [_HEADER, f"pythons = {toml.spelled(pins.pythons)}", "", "[environment]"]
    lines += [f"{kind} = {toml.spelled(recipes)}" for kind, recipes in pins.recipes.items()]
    for part in pins.parts:
        lines += ["", "[[part]]", *_part_lines(part)]
    lines += ["", "[wheel]"]
    for file in sorted(pins.wheels, key=str.lower):
        wheel = pins.wheels[file]
        facts = {"name": wheel.name, "version": wheel.version, "sha256": wheel.sha256}
        lines.append(f"{toml.spelled(file)} = {toml.spelled(facts)}")
    return "\n".join(lines) + "\n"


def _part_lines(part: Part) -> Iterator[str]:
    for key in ("name", "about", "version", "compute", "requires", "only", "index"):
        value = getattr(part, key)
        if value not in (None, ()) or key == "requires":
            yield f"{key} = {toml.spelled(value)}"
    for system in sorted(part.wheels):
        yield f"[part.wheels.{system}]"
        for python, files in sorted(part.wheels[system].items()):
            if len(files) == 1:
                yield f"{python} = {toml.spelled(files)}"
            else:
                yield from (f"{python} = [", *(f"  {toml.spelled(file)}," for file in files), "]")
