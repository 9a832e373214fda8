"""A license that tools cannot read."""

from collections.abc import Iterator

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from builder.errors import Problem
from builder.kernel import Kernel
from builder.wording import quoted

_MEANT = {
    "apache": "Apache-2.0",
    "apache2": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "apache-2": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "bsd-3": "BSD-3-Clause",
    "bsd-2": "BSD-2-Clause",
    "gpl-3": "GPL-3.0-only",
    "gplv3": "GPL-3.0-only",
    "mit license": "MIT",
}


def check(kernel: Kernel) -> Iterator[Problem]:
    """Yield a license that is no SPDX expression."""
    problem = problem_of(kernel.config.general.license)
    if problem is not None:
        message, remedy = problem
        yield kernel.source.problem("B114", message, path=("general", "license"), severity="warning", help=remedy)


def problem_of(license_: str) -> tuple[str, str] | None:
    """Return what is wrong with a license, and the remedy."""
    try:
        canonicalize_license_expression(license_)
    except InvalidLicenseExpression:
        message = f"{quoted(license_)} is not an SPDX license expression"
        meant = _meant(license_)
        remedy = f"did you mean '{meant}'?" if meant else "see https://spdx.org/licenses, or write 'LicenseRef-<name>'"
        return message, remedy
    return None


def _meant(license_: str) -> str | None:
    folded = " ".join(license_.lower().split())
    if folded in _MEANT:
        return _MEANT[folded]
    try:
        return str(canonicalize_license_expression(folded.replace(" ", "-")))
    except InvalidLicenseExpression:
        return None
