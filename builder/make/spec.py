"""The specification of one build: one value for every engine; Nix passes it as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder import json_text
from builder.config import Backend, Framework, LoadTestRule, Version
from builder.config.v5 import KernelDependency
from builder.errors import BuilderError
from builder.make import reproducible
from builder.make.kernel_lock import LockedTree
from builder.matrix import Cell, quick
from builder.matrix.variant import dotted
from builder.pins import PinnedWheel, PinSet
from builder.wheel.archive import EPOCH
from builder.wheel.options import WheelOptions
from builder.wording import listed, nearest, quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """The options of a build; JSON has only those that are not the default, so that equal options have equal JSON."""

    wheel: WheelOptions = field(default_factory=WheelOptions)
    unique_id: str | None = None
    """What names the ops instead of their content."""
    allow_unsafe_flags: bool = False
    epoch: int = EPOCH
    """The time stamp of the build, in seconds since 1970."""
    load_test: LoadTestRule | None = None
    """What becomes of a wheel that cannot be imported; None leaves it to build.toml."""

    def to_json(self) -> dict[str, Any]:
        """Return the options that are not the default."""
        usual = _options(BuildOptions())
        return {name: value for name, value in _options(self).items() if value != usual[name]}

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> "BuildOptions":
        """Read what `to_json` wrote, or what a flake asks for.

        Raises:
            BuilderError: an option is not known, or not one that a build can have.
        """
        found = _options(cls())
        for name, value in table.items():
            _check(name, value, found)
            found[name] = value
        rule = found["load-test"]
        return cls(
            wheel=WheelOptions(
                version=found["wheel-version"], label=found["label"], policy=found["policy"], only=_only(found["archs"])
            ),
            unique_id=found["unique-id"],
            allow_unsafe_flags=found["allow-unsafe-flags"],
            epoch=reproducible.checked_epoch(str(found["epoch"]), name="the option 'epoch'"),
            load_test=None if rule is None else LoadTestRule(rule),
        )


def _check(name: str, value: object, known: Mapping[str, object]) -> None:
    if name not in known:
        guess = nearest(name, known)
        remedy = f"did you mean '{guess}'?" if guess else f"there are {listed(known)}"
        raise BuilderError(f"{quoted(name)} is not an option of a build", help=remedy)
    usual = known[name]
    if isinstance(usual, bool):
        fits, kind = isinstance(value, bool), "true or false"
    elif isinstance(usual, list):
        fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
        kind = "a list of texts"
    elif name == "load-test":
        rules = [rule.value for rule in LoadTestRule]
        fits, kind = value is None or value in rules, f"one of {listed(rules)}"
    else:
        fits, kind = name == "epoch" or value is None or isinstance(value, str), "a text"
    if not fits:
        raise BuilderError(
            f"the option '{name}' is {json_text.line(value)}, not {kind}", help="correct it in the options of the flake"
        )


def _only(archs: Sequence[str]) -> tuple[str, ...]:
    return quick.parse(",".join(archs)).archs if archs else ()


def _options(options: BuildOptions) -> dict[str, Any]:
    return {
        "wheel-version": options.wheel.version,
        "label": options.wheel.label,
        "policy": options.wheel.policy,
        "archs": list(options.wheel.only),
        "unique-id": options.unique_id,
        "allow-unsafe-flags": options.allow_unsafe_flags,
        "epoch": options.epoch,
        "load-test": None if options.load_test is None else str(options.load_test),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedPackages:
    """An environment with exactly the pinned wheels in it."""

    path: Path
    pins: PinSet

    @property
    def python(self) -> Path:
        """The interpreter that has the wheels."""
        return self.path / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """Where the wheels are."""
        return self.path / "lib" / f"python{dotted(self.pins.python)}" / "site-packages"

    def to_json(self) -> dict[str, Any]:
        """Return the environment as JSON."""
        wheels = [
            {"file": wheel.file, "name": wheel.name, "sha256": wheel.sha256, "version": wheel.version}
            | ({} if wheel.index is None else {"index": wheel.index})
            for wheel in self.pins.wheels
        ]
        pins = {"python": self.pins.python, "system": self.pins.system, "wheels": wheels}
        return {"path": str(self.path), "pins": pins}

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> "PinnedPackages":
        """Read what `to_json` wrote."""
        pins = table["pins"]
        wheels = tuple(PinnedWheel(**wheel) for wheel in pins["wheels"])
        return cls(path=Path(table["path"]), pins=PinSet(pins["python"], pins["system"], wheels))


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPackages:
    """What is installed on this machine, without isolation."""

    python: Path
    site_packages: Path

    def to_json(self) -> dict[str, Any]:
        """Return the environment as JSON."""
        return {"python": str(self.python), "site-packages": str(self.site_packages)}

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> "InstalledPackages":
        """Read what `to_json` wrote."""
        return cls(python=Path(table["python"]), site_packages=Path(table["site-packages"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSpec:
    """A kernel, one of its cells, and its environment; `cells.nix` writes the same as JSON."""

    kernel: Path
    cell: Cell
    environment: PinnedPackages | InstalledPackages
    test_environment: PinnedPackages | None = None
    """What the load test has after the environment of the build."""
    headers: Mapping[str, Path] = field(default_factory=dict)
    """Folders of headers that were fetched before, by the CMake variable that names each."""
    sources: Mapping[str, Path] = field(default_factory=dict)
    """The trees of foreign sources, or their archives, by name."""
    kernels: Mapping[KernelDependency, LockedTree] | None = None
    """The kernels of `kernels.lock`, for the load test; None where there is no lock, or an engine finds them later."""
    options: BuildOptions = field(default_factory=BuildOptions)

    @property
    def pins(self) -> str:
        """The digest of the pinned wheels; empty without isolation."""
        return self.environment.pins.digest if isinstance(self.environment, PinnedPackages) else ""

    def to_json(self) -> str:
        """Return the spec as JSON; `from_json` makes an equal one of it."""
        kernels = self.kernels
        table = {
            "kernel": str(self.kernel),
            "cell": _cell_table(self.cell),
            "environment": self.environment.to_json(),
            "test-environment": None if self.test_environment is None else self.test_environment.to_json(),
            "headers": {name: str(folder) for name, folder in self.headers.items()},
            "sources": {name: str(place) for name, place in self.sources.items()},
            "kernels": None if kernels is None else [tree.to_json(wanted) for wanted, tree in kernels.items()],
            "options": self.options.to_json(),
        }
        return json_text.canonical(table)

    @classmethod
    def from_json(cls, text: str) -> "BuildSpec":
        """Read a spec.

        Raises:
            BuilderError: an option is not one that a build can have, or a locked kernel none of a lock.
        """
        table = json.loads(text)
        environment, tested, kernels = table["environment"], table["test-environment"], table["kernels"]
        kind = PinnedPackages if "pins" in environment else InstalledPackages
        return cls(
            kernel=Path(table["kernel"]),
            cell=_cell(table["cell"]),
            environment=kind.from_json(environment),
            test_environment=None if tested is None else PinnedPackages.from_json(tested),
            headers={name: Path(folder) for name, folder in table["headers"].items()},
            sources={name: Path(place) for name, place in table["sources"].items()},
            kernels=None if kernels is None else LockedTree.from_json(kernels),
            options=BuildOptions.from_json(table["options"]),
        )


def _cell_table(cell: Cell) -> dict[str, Any]:
    return {
        "variant": cell.variant,
        "framework": cell.framework.value,
        "backend": cell.backend.value,
        "system": cell.system,
        "torch": str(cell.torch),
        "toolkit": cell.toolkit,
        "compute": cell.compute,
        "stable-abi": None if cell.stable_abi is None else str(cell.stable_abi),
        "tvm-ffi": None if cell.tvm_ffi is None else str(cell.tvm_ffi),
        **({} if cell.python is None else {"python": cell.python}),
        "bundle": cell.bundle,
        "set": cell.set,
    }


def _cell(table: Mapping[str, Any]) -> Cell:
    stable, tvm_ffi = table["stable-abi"], table["tvm-ffi"]
    return Cell(
        variant=table["variant"],
        framework=Framework(table["framework"]),
        backend=Backend(table["backend"]),
        system=table["system"],
        torch=Version(table["torch"]),
        toolkit=table["toolkit"],
        compute=table["compute"],
        stable_abi=None if stable is None else Version(stable),
        tvm_ffi=None if tvm_ffi is None else Version(tvm_ffi),
        python=table.get("python"),
        bundle=table["bundle"],
        set=table["set"],
    )
