"""What builds took from caches of compiled files, in words."""

from collections import Counter
from collections.abc import Iterable

from builder.compile_cache.options import LOCAL
from builder.engine.outcome import CellOutcome


def name_of(cache: str) -> str:
    """Return what a cache is called where a person reads it."""
    return "the store" if cache == LOCAL else cache


def status_of(outcome: CellOutcome) -> str:
    """Say how a cell ended."""
    return "from the store" if outcome.status == "hit" else outcome.status


def compiled(outcomes: Iterable[CellOutcome]) -> tuple[str, ...]:
    """Say how many objects were compiled, and what the caches saved; nothing where no cache had any."""
    reports = [each.report for each in outcomes if each.report is not None and each.status in {"built", "compiled"}]
    objects = sum(len(report.objects) for report in reports)
    cached = [file for report in reports for file in report.cached]
    if not cached:
        return ()
    saved = sum(file["saved"] for file in cached)
    counts = Counter(file["cache"] for file in cached)
    whose = ", ".join(f"{count} of {name_of(name)}" for name, count in sorted(counts.items()))
    made = f"{objects - len(cached)} of {objects} files compiled"
    return (f"{made}; from caches: {whose}, which saved {saved:.1f} s of compiling",)
