"""Licenses: whether one is an SPDX expression, and which was meant."""

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

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
