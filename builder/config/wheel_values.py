"""Values that become metadata of a wheel: version, requirements and license; and its largest size."""

import contextlib
import re

from builder.config.values import Text
from builder.wording import quoted

_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_MEANT_LICENSES = {
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


class WheelVersion(Text):
    """A version of a wheel, in the form of PEP 440 and without a label, as in `"2.8.4"`."""

    __slots__ = ()

    pattern = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}(?:(?:a|b|rc)[0-9]{1,9})?(?:\.post[0-9]{1,9})?(?:\.dev[0-9]{1,9})?"
    code = "B057"
    kind = "a version of a wheel"
    rule = "write it as in '2.8.4', '2.9.0rc1' or '2.8.4.post1'; the builder adds the label after '+'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the version in its normalised form, without a label."""
        guess = text.partition("+")[0].removeprefix("v")
        return f"write '{guess}'" if cls.matches(guess) else None

    @property
    def major(self) -> int:
        """The first number."""
        return int(re.split(r"[^0-9]", self, maxsplit=1)[0])


class PackageRequirement(Text):
    """A requirement of a Python package by name, in the form of PEP 508."""

    __slots__ = ()

    # Necessary, not sufficient: PEP 508's grammar makes no readable regular expression.
    pattern = r"[A-Za-z0-9][^\u0000-\u001f@]{0,299}"
    code = "B054"
    kind = "a requirement of a Python package"
    rule = "write its name, and what PEP 508 has after it, as in 'tokenizers>=0.20'"

    @classmethod
    def matches(cls, text: str) -> bool:
        """Whether the text names a package on an index."""
        from packaging.requirements import InvalidRequirement, Requirement  # noqa: PLC0415  few configs have one

        if not text.isprintable() or not super().matches(text):
            return False
        try:
            Requirement(text)
        except (InvalidRequirement, RecursionError):
            return False
        return True

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the remedy for a requirement with a URL."""
        return "name a package of an index, and not an address" if "@" in text or "://" in text else None

    @property
    def package(self) -> str:
        """Name of the package, normalised as indexes compare it."""
        from packaging.utils import canonicalize_name  # noqa: PLC0415  few configs have one

        return canonicalize_name(re.split(r"[^A-Za-z0-9._-]", self, maxsplit=1)[0])


class WheelSize(Text):
    """A size of a wheel, as in `"200 MB"`: a number above 0 with kB, MB or GB (powers of 1,000), or KiB, MiB or GiB."""

    __slots__ = ()

    pattern = r"(?:[1-9][0-9]{0,5}(?:\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9]) ?(?:kB|MB|GB|KiB|MiB|GiB)"
    code = "B066"
    kind = "a size of a wheel"
    rule = "write a number and a unit, as in '200 MB' or '100 MiB'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the size with a valid unit."""
        known = {unit.lower(): unit for unit in _UNITS}
        number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        unit = known.get(text[len(number) :].lower())
        guess = f"{number.strip()} {unit}"
        return f"write '{guess}'" if unit is not None and cls.matches(guess) else None

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        from fractions import Fraction  # noqa: PLC0415  few configs have a size

        number = self.rstrip("kKMGiB").rstrip()
        return int(Fraction(number) * _UNITS[self[len(number) :].strip()])


def license_problem(license_: str) -> tuple[str, str] | None:
    """Return the problem of a license, and the remedy; None if it is valid."""
    from packaging.licenses import (  # noqa: PLC0415  start-up time: reading a config judges no license
        InvalidLicenseExpression,
        canonicalize_license_expression,
    )

    folded = " ".join(license_.lower().split())
    meant = _MEANT_LICENSES.get(folded)
    try:
        canonicalize_license_expression(license_)
    except InvalidLicenseExpression:
        with contextlib.suppress(InvalidLicenseExpression):
            meant = meant or str(canonicalize_license_expression(folded.replace(" ", "-")))
        remedy = f"did you mean '{meant}'?" if meant else "see https://spdx.org/licenses, or write 'LicenseRef-<name>'"
        return f"{quoted(license_)} is not an SPDX license expression", remedy
    return None
