"""The result of a build: a wheel, and a report that decides none of its bytes, kept as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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

    load_test: LoadTest = SKIPPED
    not_reproducible: str | None = None
    """The reason for which another machine may build other bytes."""
    plan: Mapping[str, Any] | None = None
    """The decisions of CMake about architectures and components."""
    canonical_path: bool | None = None
    """Whether it was built at the canonical path."""
    sandbox: bool | None = None
    """Whether it was built in a sandbox."""
    peak_memory: int | None = None
    """Bytes that its largest process took."""
    compile_seconds: float | None = None
    finish_seconds: float | None = None
    """Seconds from the last compiler to the end."""
    files: tuple[File, ...] | None = None
    """The files that ninja made, in the order in which it began them."""
    log: str | None = None
    derivation: str | None = None
    """The derivation that Nix built; `output` is its place."""
    output: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the report as the store and `--json` have it."""
        ops = None if self.load_test.by_choice else {name: list(keys) for name, keys in self.load_test.ops.items()}
        table = {
            "peak-memory": self.peak_memory,
            "compile-seconds": self.compile_seconds,
            "finish-seconds": self.finish_seconds,
            "canonical-path": self.canonical_path,
            "sandbox": self.sandbox,
            "not-reproducible": self.not_reproducible,
            "files": None if self.files is None else [dict(file) for file in self.files],
            "ops": ops,
            "load-test": self.load_test.to_json(),
            "plan": None if self.plan is None else dict(self.plan),
            "log": self.log,
            "derivation": self.derivation,
            "output": self.output,
        }
        return {name: value for name, value in table.items() if value is not None or name in _ALWAYS}

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
            return _read(table)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"its report cannot be read: {error!r}") from error


def _read(table: Mapping[str, Any]) -> BuildReport:
    files = table.get("files")
    return BuildReport(
        load_test=LoadTest.from_report(table),
        not_reproducible=table.get("not-reproducible"),
        plan=table.get("plan"),
        canonical_path=table.get("canonical-path"),
        sandbox=table.get("sandbox"),
        peak_memory=table.get("peak-memory"),
        compile_seconds=table.get("compile-seconds"),
        finish_seconds=table.get("finish-seconds"),
        files=None if files is None else tuple(map(read_file, files)),
        log=table.get("log"),
        derivation=table.get("derivation"),
        output=table.get("output"),
    )


def read_file(table: Mapping[str, Any]) -> File:
    """Read what ninja made from its JSON values.

    Raises:
        KeyError: it lacks one of them.
        TypeError: it is something else.
    """
    file = File(output=table["output"], start=table["start"], end=table["end"])
    if "cache" in table:
        file |= {"cache": table["cache"], "writer": table["writer"], "saved": table["saved"]}
    return file


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A finished wheel, and how its build went."""

    name: str
    content: bytes
    report: BuildReport
    objects: Mapping[str, ObjectInputs] = field(default_factory=dict)
    """The inputs of each object, by its path as ninja has it."""
