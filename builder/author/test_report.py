"""What pytest found, as its report for programs says it."""

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from builder.errors import ToolError

_KINDS = ("failure", "error")
_COLLECTION = "collection failure"
_SAID = re.compile(r"^E +(.*)$", re.MULTILINE)
_PLACE = re.compile(r"^(\S+:\d+): ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """How many tests passed, and what the first that did not says."""

    __test__ = False  # not one of pytest's own

    passed: int
    failed: int = 0
    skipped: int = 0
    first: str | None = None

    @classmethod
    def read(cls, path: Path) -> "TestReport":
        """Read the report of a run that came to its end.

        Raises:
            ToolError: there is none that can be read.
        """
        try:
            suite = ET.parse(path).getroot().find("testsuite")  # noqa: S314  of the user's own pytest
        except (OSError, ET.ParseError) as error:
            raise ToolError(f"pytest left no report: {error}", help="leave out what turns its report off") from error
        cases = [] if suite is None else suite.findall("testcase")
        failed = [case for case in cases if any(case.find(kind) is not None for kind in _KINDS)]
        skipped = [case for case in cases if case.find("skipped") is not None]
        return cls(
            passed=len(cases) - len(failed) - len(skipped),
            failed=len(failed),
            skipped=len(skipped),
            first=_text(failed[0]) if failed else None,
        )

    def __str__(self) -> str:
        counts = {"failed": self.failed, "passed": self.passed, "skipped": self.skipped}
        return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "no test ran"


def _text(case: ET.Element) -> str:
    """Return the name of a test that failed, what it says and where."""
    found = next(each for kind in _KINDS if (each := case.find(kind)) is not None)
    text = found.text or ""
    places = _PLACE.findall(text)
    said = _SAID.search(text)
    message = found.get("message", "")
    if message == _COLLECTION and said is not None:  # which says nothing
        message = said[1]
    name = f"{case.get('classname', '')}::{case.get('name', '')}".removeprefix("::")
    where = f"  --> {places[-1]}" if places else ""
    return "\n".join(filter(None, (f"{name}: {message}", where)))
