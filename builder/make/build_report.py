"""The result of a build: a wheel, and a report that does not affect its bytes, kept as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from builder import codec
from builder.loadtest.load_outcome import SKIPPED, LoadTest
from builder.make.ninja_log import File
from builder.make.objects import ObjectInputs

_ALWAYS = ("not-reproducible", "ops", "load-test", "plan")
"""Fields whose null has a meaning; others are omitted if unknown."""
_LASTING = (*_ALWAYS, "canonical-path")
"""Fields that are the same in every build of a wheel, so without times and memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """The report on a build; a field is None if unknown, as after a build by an older `builder` or in Nix's sandbox."""

    peak_memory: int | None = None
    """The memory of its largest process, in bytes."""
    compile_seconds: float | None = None
    finish_seconds: float | None = None
    """Seconds from the end of the last compiler to the end of the build."""
    canonical_path: bool | None = None
    """Whether it was built at the canonical path."""
    sandbox: bool | None = None
    """Whether it was built in a sandbox."""
    not_reproducible: str | None = None
    """Why another machine may build other bytes."""
    files: tuple[File, ...] | None = None
    """The files that ninja made, in the order in which it started them."""
    warnings: tuple[str, ...] | None = None
    """The warnings of the compilers, with the user's paths."""
    load_test: LoadTest = field(default=SKIPPED, metadata=codec.spelled(write=LoadTest.to_json))
    plan: Mapping[str, Any] | None = None
    """CMake's decisions about architectures and components."""
    log: str | None = None
    derivation: str | None = None
    """The derivation that Nix built; `output` is the path of its result."""
    output: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON for the store and `--json`."""
        found: dict[str, Any] = {}
        for name, value in codec.encode(self).items():
            if name == "load-test":
                found["ops"] = None if self.load_test.by_choice else value["ops"]
            if value is not None or name in _ALWAYS:
                found[name] = value
        return found

    @property
    def objects(self) -> tuple[File, ...]:
        """The objects that compilers made, if ninja's log tells."""
        return tuple(file for file in self.files or () if file["output"].endswith(".o"))

    @property
    def cached(self) -> tuple[File, ...]:
        """The objects that came from a cache."""
        return tuple(file for file in self.objects if "cache" in file)

    def lasting(self) -> dict[str, Any]:
        """Return the fields that are the same in every build of the wheel."""
        return {name: value for name, value in self.to_json().items() if name in _LASTING}

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> "BuildReport":
        """Read the output of `to_json`, or of an older `builder`, which had fewer fields.

        Raises:
            ValueError: the table is not a report.
        """
        try:
            others = {name: value for name, value in table.items() if name != "load-test"}
            return replace(codec.decode(cls, others), load_test=LoadTest.from_report(table))
        except (AttributeError, ValueError) as error:
            raise ValueError(f"its report cannot be read: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A finished wheel, with the report on its build."""

    name: str
    content: bytes
    report: BuildReport
    objects: Mapping[str, ObjectInputs] = field(default_factory=dict)
    """The inputs of each object, by ninja's path."""
