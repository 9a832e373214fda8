"""The report of an audit: findings, for people and for programs."""

from dataclasses import asdict, dataclass

from builder.errors import Severity
from builder.wording import escaped


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A violation of a rule by a file."""

    file: str
    rule: str
    symbol: str
    """The symbol, library, path or key that violates the rule."""
    why: str
    remedy: str = "build the wheel again"
    severity: Severity = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """The findings of all checks about one wheel."""

    wheel: str
    rules: tuple[str, ...]
    """The rules that were checked."""
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no rule is violated; warnings and notes do not count."""
        return not any(finding.severity == "error" for finding in self.findings)

    def to_dict(self) -> dict[str, object]:
        """Return the report as JSON values."""
        return {
            "wheel": self.wheel,
            "ok": self.ok,
            "rules": list(self.rules),
            "findings": [asdict(finding) for finding in self.findings],
        }

    def to_text(self) -> str:
        """Return the report as text, grouped by file."""
        if not self.findings:
            return f"{self.wheel}: ok ({len(self.rules)} rules: {', '.join(self.rules)})\n"
        lines = [f"{self.wheel}: {len(self.findings)} finding{'s' if len(self.findings) > 1 else ''}"]
        for finding in self.findings:
            # One line each, whatever a stranger's file names contain.
            lines.append(f"  {finding.severity}: {escaped(finding.file)}: {finding.rule}: {escaped(finding.symbol)}")
            lines.append(f"    why:  {escaped(finding.why)}")
            lines.append(f"    help: {escaped(finding.remedy)}")
        return "\n".join(lines) + "\n"
