"""The most bytes that a wheel may have, as `[wheel] max-size` says it."""

from fractions import Fraction

from builder.config.values import Text

_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


class WheelSize(Text):
    """A size of a wheel, as in `"200 MB"`: a number above 0, and kB, MB or GB (powers of 1,000), or KiB, MiB or GiB."""

    __slots__ = ()

    pattern = r"(?:[1-9][0-9]{0,5}(?:\.[0-9]{1,3})?|0\.[0-9]{0,2}[1-9]) ?(?:kB|MB|GB|KiB|MiB|GiB)"
    code = "B066"
    kind = "a size of a wheel"
    rule = "write a number and a unit, as in '200 MB' or '100 MiB'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the size with its unit as it is spelled here."""
        known = {unit.lower(): unit for unit in _UNITS}
        number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
        unit = known.get(text[len(number) :].lower())
        guess = f"{number.strip()} {unit}"
        return f"write '{guess}'" if unit is not None and cls.matches(guess) else None

    @property
    def bytes(self) -> int:
        """The same as a number of bytes."""
        number = self.rstrip("kKMGiB").rstrip()
        return int(Fraction(number) * _UNITS[self[len(number) :].strip()])
