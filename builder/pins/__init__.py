"""Read the pin file: the wheels of every build environment, each named by its hash."""

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
#               `tested = false`: nobody has fetched the files, so they serve only cells that have no other choice
# wheel         what each file is, once
"""


class MissingPinsError(NotHereError):
    """No environment is pinned for a requirement; `pythons` lists the Pythons with one."""

    def __init__(self, message: str, *, pythons: tuple[str, ...] = ()) -> None:
        remedy = "add them with `builder pins update` where the index of these wheels can be reached"
        if pythons:
            remedy = f"use Python {' or '.join(map(dotted, pythons))}, which have pins"
        super().__init__(message, help=f"{remedy}, or build against an installed torch with --no-isolation")
        self.pythons = pythons


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedWheel:
    """A wheel, identified by its hash wherever it comes from."""

    file: str
    name: str
    version: str
    sha256: str
    index: str | None = field(default=None, metadata=codec.spelled(sparse=True))
    """The index that publishes it; None for the default one."""

    @property
    def python(self) -> str | None:
        """The only Python that can import it, such as `cp311`; None if several can."""
        abi = self.file.split("-")[-2]
        return abi if _ONE_PYTHON.fullmatch(abi) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """The purpose of an environment; `version` is the framework's, as in a cell, or empty for a plain library."""

    framework: Framework
    version: str
    compute: str
    python: str
    system: str
    stable_abi: bool = False

    @property
    def recipe(self) -> str:
        """The key in `[environment]` with the parts to use."""
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
        """Return the requirement of `cell` for the Python `python`, such as `cp311`."""
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
        """The sha256 of the installed wheels, whichever index they came from."""
        return sha256(self.to_json())

    def to_json(self) -> str:
        """Return the set as canonical JSON."""
        wheels = [
            {"file": wheel.file, "name": wheel.name, "sha256": wheel.sha256, "version": wheel.version}
            for wheel in self.wheels
        ]
        content = {"python": self.python, "system": self.system, "wheels": wheels}
        return json_text.document(content, indent=1, ordered=True)

    @property
    def other_pythons(self) -> tuple[str, ...]:
        """The other Pythons for which some of its wheels are."""
        return tuple(sorted({wheel.python or self.python for wheel in self.wheels} - {self.python}))

    def __getitem__(self, name: str) -> PinnedWheel:
        for wheel in self.wheels:
            if wheel.name == name:
                return wheel
        raise KeyError(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedPart:
    """Wheels that belong together; an environment consists of parts that are pinned independently."""

    name: str
    about: str
    requires: tuple[str, ...]
    """The requirements that `builder pins update` resolves; empty if the machine provides the part."""
    version: str | None = None
    compute: tuple[str, ...] = ()
    index: str | None = None
    only: tuple[str, ...] = ()
    """The resolved packages to keep; empty for all."""
    tested: bool = True
    """Whether anybody has fetched the files; otherwise they serve only cells of their own version and compute."""
    wheels: Mapping[str, Mapping[str, tuple[str, ...]]]
    """File names by system and Python tag."""

    def serves(self, reference: str, requirement: Requirement) -> bool:
        """Whether `reference`, such as `torch/cpu`, selects this part for a requirement."""
        name, _, compute = reference.partition("/")
        return (
            self.name == name
            and self.version in (None, requirement.version)
            and (not self.compute or (compute or requirement.compute) in self.compute)
            and (self.tested or compute in ("", requirement.compute))
        )

    def files(self, system: str, python: str) -> tuple[str, ...] | None:
        """Return the files for a Python on a system; None if nothing is pinned for them."""
        if not self.requires:
            return ()
        of_system = self.wheels.get(system, {})
        return of_system.get(python, of_system.get(pin_file.ANY, ())) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The whole file."""

    pythons: tuple[str, ...]
    recipes: Mapping[str, tuple[tuple[str, ...], ...]]
    """The lists of parts for each kind of environment; the first list that is pinned is used."""
    parts: tuple[PinnedPart, ...]
    wheels: Mapping[str, PinnedWheel]

    def environment(self, requirement: Requirement, *, any_python: bool = False) -> PinSet:
        """Return the wheels that a build for `requirement` needs.

        `any_python` is for a build that compiles nothing against Python: if a part is not pinned for the Python of
        `requirement`, use its wheels for the newest other Python. The build uses their headers and libraries, and
        imports nothing.

        Raises:
            MissingPinsError: a part is not pinned for this Python and system.
        """
        found = self._find(requirement, self.pythons if any_python else ())
        if found is not None:
            return found
        pythons = self.pinned_pythons(requirement)
        python = f" with Python {dotted(requirement.python)}" if pythons else ", with any Python"
        raise MissingPinsError(f"no wheels are pinned for {requirement}{python}", pythons=pythons)

    def additional(self, names: tuple[str, ...], requirement: Requirement, *, base: PinSet) -> PinSet:
        """Return the wheels in these parts that `base` lacks, as far as they are pinned."""
        files = (file for name in names for file in sorted(self._files((name,), requirement) or ()))
        found = {wheel.name: wheel for wheel in map(self.wheels.__getitem__, files)}
        have = {wheel.name for wheel in base.wheels}
        wheels = sorted((wheel for wheel in found.values() if wheel.name not in have), key=lambda wheel: wheel.name)
        return PinSet(base.python, base.system, tuple(wheels))

    def pinned_pythons(self, requirement: Requirement) -> tuple[str, ...]:
        """Return the Pythons for which the same requirement is pinned."""
        return tuple(python for python in self.pythons if self._find(replace(requirement, python=python)) is not None)

    def lacking(self, requirement: Requirement) -> tuple[int, ...]:
        """Return the positions of parts that have no files for a requirement, but say where files are published."""
        for recipe in self.recipes.get(requirement.recipe, ()):
            found = []
            for reference in recipe:
                own = [at for at, part in enumerate(self.parts) if part.serves(reference, requirement)]
                if all(self.parts[at].files(requirement.system, requirement.python) is None for at in own):
                    found.append(next((at for at in own if requirement.system in self.parts[at].wheels), None))
            if None not in found:
                return tuple(at for at in found if at is not None)
        return ()

    def need(self, cell: Cell) -> Requirement:
        """Return the requirement of a cell's environment, before a Python is chosen."""
        requirement = Requirement.of(cell, "")
        return self.of_plain_torch(requirement) if cell.noarch else requirement

    def of_plain_torch(self, requirement: Requirement) -> Requirement:
        """Return the requirement for loading a noarch wheel: torch for the CPU, of this or else the newest version.

        torch for a GPU cannot be imported without the GPU's libraries; it is used only if no other torch is pinned.
        """
        tested = replace(self, parts=tuple(part for part in self.parts if part.tested))
        versions = sorted({Version(part.version) for part in tested.parts if part.version is not None}, reverse=True)
        plain = (
            replace(requirement, version=version, compute="cpu")
            for version in (requirement.version, *map(str, versions))
        )
        return next(filter(tested.pinned_pythons, plain), requirement)

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
        """Report each environment that would have two versions of one package."""
        for requirement in self.requirements():
            names = [wheel.name for wheel in self.environment(requirement).wheels]
            for name in sorted({name for name in names if names.count(name) > 1}):
                yield f"{requirement} with Python {dotted(requirement.python)}: {name}"

    def _find(self, requirement: Requirement, others: tuple[str, ...] = ()) -> PinSet | None:
        """Return the first recipe that is pinned for the Python, or with each part for the newest of `others`."""
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
    """Read the pin file, and refuse pins without a valid hash before anything runs.

    Raises:
        PinsError: with every problem of the file.
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


def _part(table: dict[str, Any]) -> PinnedPart:
    wheels = {
        system: {python: tuple(files) for python, files in of_system.items()}
        for system, of_system in table.get("wheels", {}).items()
    }
    facts: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in table.items()}
    return PinnedPart(**{**facts, "wheels": wheels})


def to_toml(pins: Pins) -> str:
    """Return the canonical text of the pin file."""
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


def _part_lines(part: PinnedPart) -> Iterator[str]:
    for key in ("name", "about", "version", "compute", "requires", "only", "index"):
        value = getattr(part, key)
        if value not in (None, ()) or key == "requires":
            yield f"{key} = {toml.spelled(value)}"
    if not part.tested:
        yield "tested = false"
    for system in sorted(part.wheels):
        yield f"[part.wheels.{system}]"
        for python, files in sorted(part.wheels[system].items()):
            if len(files) == 1:
                yield f"{python} = {toml.spelled(files)}"
            else:
                yield from (f"{python} = [", *(f"  {toml.spelled(file)}," for file in files), "]")
