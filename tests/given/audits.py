"""Wheels that are audited."""

import json
import sys

from builder import audit
from builder.wheel.archive import Wheel
from tests.given.processes import output

AUDITWHEEL = (sys.executable, "-m", "auditwheel", "show", "--json", "--disable-isa-ext-check")
USE = '\n__attribute__((visibility("default"))) void *used[] = {'


def findings(path, **plan):
    """Return the rule and the symbol of each finding of a wheel."""
    report = audit.run(Wheel.read(path), plan=audit.AuditPromise(**plan))
    return {(finding.rule, finding.symbol) for finding in report.findings}


def calls(*symbols):
    """Return C++ that needs these mangled symbols, whatever they are."""
    declared = "".join(f'extern "C" void {symbol}(void);\n' for symbol in symbols)
    return declared + USE + ", ".join(f"(void *)&{symbol}" for symbol in symbols) + "};\n"


def by_auditwheel(path):
    """Return the policy that auditwheel finds."""
    return json.loads(output(*AUDITWHEEL, path))["sym_tag"]
