"""The version of a wheel, as `[wheel] version` has it."""

import re

from builder.config.values import InvalidValueError, Text
from builder.wording import quoted


class WheelVersion(Text):
    """A version of a wheel, in the form of PEP 440 and without a label, as in `"2.8.4"`."""

    __slots__ = ()

    pattern = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,5}(?:(?:a|b|rc)[0-9]{1,9})?(?:\.post[0-9]{1,9})?(?:\.dev[0-9]{1,9})?"
    code = "B057"
    kind = "a version of a wheel"
    rule = "write it as in '2.8.4', '2.9.0rc1' or '2.8.4.post1'; the builder adds the label after '+'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the version in the form that indexes have it in, without a label."""
        guess = text.partition("+")[0].removeprefix("v")
        return f"write '{guess}'" if cls.matches(guess) else None

    @property
    def major(self) -> int:
        """The first number."""
        return int(re.split(r"[^0-9]", self, maxsplit=1)[0])


def of_another(version: WheelVersion, major: int) -> InvalidValueError | None:
    """Return why a wheel of a kernel cannot have a version, whose first number is the version of the kernel's API."""
    if version.major == major:
        return None
    remedy = f"write a version that begins with {major}, or change general.version"
    return InvalidValueError(
        f"{quoted(version)} does not fit general.version = {major}", code=WheelVersion.code, help=remedy
    )
