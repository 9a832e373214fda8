"""The outcome of a wheel's load test: one value for reports, records, indexes and people."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from builder import codec
from builder.config import LoadTestRule
from builder.errors import BuilderError


class LoadError(BuilderError):
    """A wheel that cannot be imported, or lacks ops."""

    exit_code = 5


class LoadState(str, Enum):
    """The possible outcomes of a load test."""

    LOADED = "loaded"
    """The package was imported, and the ops of its library are registered."""
    IMPORTED = "imported"
    """The package needs a device when it is imported: a machine without a GPU cannot test more."""
    NOT_IMPORTABLE = "not-importable"
    """The package imports a module that build.toml does not declare."""
    BROKEN = "broken"
    """The library does not load, the package raises an error, or no op is registered."""
    NOT_TESTED = "not-tested"
    """There was no test; the reason says why."""

    def __str__(self) -> str:
        return self.value


REFUSED = frozenset({LoadState.NOT_IMPORTABLE, LoadState.BROKEN})
_WORDS = {
    LoadState.LOADED: "loaded",
    LoadState.IMPORTED: "imported, as far as a machine without a GPU can",
    LoadState.NOT_IMPORTABLE: "cannot be imported here",
    LoadState.BROKEN: "broken",
    LoadState.NOT_TESTED: "not tested",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTest:
    """The result of a load test."""

    outcome: LoadState
    ops: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The registered ops, each with the dispatch keys that have a kernel; for a plain library, its functions."""
    reason: str = ""
    """Why the state is not `loaded`, as a sentence."""
    details: str = ""
    """Python's own message, if it tells more."""
    help: str | None = None
    """The remedy."""
    module: str | None = None
    """The missing module."""
    by_choice: bool = False
    """Whether the user asked for no test."""
    packages: tuple[str, ...] = ()
    """The packages of the environment other than the framework, such as `triton 3.7.1`."""

    @property
    def refused(self) -> bool:
        """Whether nobody could use the wheel."""
        return self.outcome in REFUSED

    @property
    def words(self) -> str:
        """The outcome in words, with its reason."""
        noun = "function" if all(keys == ("C",) for keys in self.ops.values()) else "op"
        plural = "" if len(self.ops) == 1 else "s"
        ops = f", {len(self.ops)} {noun}{plural}" if self.ops and not self.refused else ""
        return f"{_WORDS[self.outcome]}{ops}" + (f": {self.reason.splitlines()[0]}" if self.reason else "")

    def require(self, rule: LoadTestRule) -> None:
        """Refuse the wheel, if the rule says so.

        Raises:
            LoadError: the wheel cannot be imported or is broken.
        """
        if rule is LoadTestRule.REQUIRE and self.refused:
            details = f"\n{self.details}" if self.details else ""
            raise LoadError(f"{self.reason}{details}", help=self.help)

    def answers(self, rule: LoadTestRule) -> bool:
        """Whether this outcome of an earlier test satisfies `rule`; if not, the wheel is tested again."""
        match rule:
            case LoadTestRule.SKIP:
                return True
            case LoadTestRule.TRY:
                return not self.by_choice
            case LoadTestRule.REQUIRE:
                return not self.by_choice and not self.refused

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values, without anything that differs between runs."""
        return {name: value for name, value in codec.encode(self).items() if name != "details"}

    @classmethod
    def from_report(cls, report: Mapping[str, Any]) -> "LoadTest":
        """Read the outcome from the report of a build; reports of older builders have only the ops.

        Raises:
            ValueError: the report has no valid outcome.
        """
        if report.get("load-test") is not None:
            return codec.decode(cls, report["load-test"])
        ops = report.get("ops")
        return SKIPPED if ops is None else codec.decode(cls, {"outcome": LoadState.LOADED.value, "ops": ops})


SKIPPED = LoadTest(outcome=LoadState.NOT_TESTED, reason="it was asked for no load test", by_choice=True)
"""The outcome of a build without a load test."""
