"""The audit of a wheel: a table of checks, each of which compares the claims of the wheel with its files."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from builder.audit import (
    abi3,
    archs,
    exports,
    function_budgets,
    gpus,
    layout,
    macos,
    manylinux,
    reading,
    size_budget,
    torch_classic,
    torch_stable_abi,
)
from builder.audit.report import AuditReport, Finding
from builder.audit.subject import AuditPromise, FrameworkClaim, Library, Subject
from builder.wheel.archive import Wheel

__all__ = ["CHECKS", "AuditPromise", "AuditReport", "Finding", "FrameworkClaim", "Library", "Subject", "judge", "run"]

BUDGET = "budget"
"""The rule that a wheel must not cost more time or memory to read than any real wheel does."""
_MOST_FINDINGS = 10_000
_LARGEST_REPORT = 16 << 20

Check = Callable[[Subject], Iterator[Finding]]

CHECKS: Mapping[str, Check] = {
    layout.RULE: layout.check,
    manylinux.RULE: manylinux.check,
    macos.RULE: macos.check,
    abi3.RULE: abi3.check,
    torch_stable_abi.RULE: torch_stable_abi.check,
    torch_classic.RULE: torch_classic.check,
    archs.RULE: archs.check,
    exports.UNIQUE_RULE: exports.check_unique,
    exports.RULE: exports.check,
    gpus.RULE: gpus.check,
    size_budget.RULE: size_budget.check,
    function_budgets.RULE: function_budgets.check,
}
"""Rule → the check that finds violations of it."""


def run(wheel: Wheel, *, plan: AuditPromise | None = None) -> AuditReport:
    """Judge a wheel: by `plan`, the promise of its build, or else by the claims of the wheel itself.

    Raises:
        WheelError: the file is damaged.
    """
    subject = reading.read(wheel, plan=plan or AuditPromise())
    return AuditReport(wheel=wheel.path.name, rules=tuple(CHECKS), findings=judge(subject))


def judge(subject: Subject) -> tuple[Finding, ...]:
    """Return the findings of all checks, sorted by file."""
    found: set[Finding] = set()
    size = 0
    for finding in chain(subject.refused, *(check(subject) for check in CHECKS.values())):
        size += len(finding.file) + len(finding.symbol) + len(finding.why)
        if len(found) == _MOST_FINDINGS or size > _LARGEST_REPORT:
            why = f"there are more findings than these {len(found)}"
            found.add(Finding(subject.dist_info, BUDGET, "findings", why, "correct these, and audit the wheel again"))
            break
        found.add(finding)
    return tuple(sorted(found))
