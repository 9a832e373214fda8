"""The result of a build: a wheel, and a report that decides none of its bytes, kept as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from builder import codec
from builder.loadtest.outcome import SKIPPED, LoadTest
from builder.make.ninja_log import File
from builder.make.objects import ObjectInputs

_ALWAYS = ("not-reproducible", "ops", "load-test", "plan")
"""Fields whose null has a meaning; others are left out if they are not known."""
_LASTING = (*_ALWAYS, "canonical-path")
"""Fields that are the same in every build of a wheel: no times, no memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """The report on a build; a field is None if unknown, as for a build by an older `builder` or in Nix's sandbox."""

    peak_memory: int | None = None
    """Bytes that its largest process took."""
    compile_seconds: float | None = None
    finish_seconds: float | None = None
    """Seconds from the last compiler to the end."""
    canonical_path: bool | None = None
    """Whether it was built at the canonical path."""
    sandbox: bool | None = None
    """Whether it was built in a sandbox."""
    not_reproducible: str | None = None
    """The reason for which another machine may build other bytes."""
    files: tuple[File, ...] | None = None
    """The files that ninja made, in the order in which it began them."""
    load_test: LoadTest = field(default=SKIPPED, metadata=codec.spelled(write=LoadTest.to_json))
    plan: Mapping[str, Any] | None = None
    """The decisions of CMake about architectures and components."""
    log: str | None = None
    derivation: str | None = None
    """The derivation that Nix built; `output` is its place."""
    output: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as the store and `--json` have it."""
        found: dict[str, Any] = {}
        for name, value in codec.encode(self).items():
            if name == "load-test":
                found["ops"] = None if self.load_test.by_choice else value["ops"]
            if value is not None or name in _ALWAYS:
                found[name] = value
        return found

    @property
    def objects(self) -> tuple[File, ...]:
        """The objects that compilers made, as far as ninja says."""
        return tuple(file for file in self.files or () if file["output"].endswith(".o"))

    @property
    def cached(self) -> tuple[File, ...]:
        """The objects that a cache had."""
        return tuple(file for file in self.objects if "cache" in file)

    def lasting(self) -> dict[str, Any]:
        """Return the part that is the same in every build of the wheel."""
        return {name: value for name, value in self.to_json().items() if name in _LASTING}

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> "BuildReport":
        """Read what `to_json` wrote, or an older `builder`, which had fewer fields.

        Raises:
            ValueError: it is not a report.
        """
        try:
            others = {name: value for name, value in table.items() if name != "load-test"}
            return replace(codec.decode(cls, others), load_test=LoadTest.from_report(table))
        except (AttributeError, ValueError) as error:
            raise ValueError(f"its report cannot be read: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A finished wheel, and how its build went."""

    name: str
    content: bytes
    report: BuildReport
    objects: Mapping[str, ObjectInputs] = field(default_factory=dict)
    """The inputs of each object, by its path as ninja has it."""
