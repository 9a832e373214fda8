"""The options of a build: the wheel's version, label and GPUs, its time stamp, and the rule for the load test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from builder import codec, json_text
from builder.config import LoadTestRule
from builder.errors import BuilderError
from builder.matrix import architectures
from builder.wheel.archive import EPOCH, LATEST
from builder.wording import listed, nearest, quoted

MANYLINUX = "manylinux_2_28"
"""The lowest policy for a wheel's tag, the one of torch's wheels: older systems have no torch."""


def epoch_of(environ: Mapping[str, str]) -> int:
    """Return the time stamp of a build: SOURCE_DATE_EPOCH, or the first time that a zip can store.

    Raises:
        BuilderError: the variable is not a time that a wheel can store.
    """
    text = environ.get("SOURCE_DATE_EPOCH")
    return EPOCH if text is None else _checked_epoch(text, name="SOURCE_DATE_EPOCH")


def _checked_epoch(text: str, *, name: str) -> int:
    """Parse a time in seconds since 1970; `name` is the user's name for it."""
    if not text.isascii() or not text.isdigit():
        raise BuilderError(f"{name} is '{text}', not a number of seconds", help="unset it, or set it to a whole number")
    # Check the length first: Python refuses very long numbers.
    if len(text.lstrip("0")) > len(str(LATEST)) or int(text) > LATEST:
        raise BuilderError(
            f"{name} is '{text}', later than the end of 2107, which is the last time that a wheel can name",
            help=f"it is in seconds, not milliseconds: set it to at most {LATEST}, or unset it",
        )
    return int(text)


def _read_epoch(value: object) -> int:
    return _checked_epoch(str(value), name="the option 'epoch'")


def _read_archs(archs: Sequence[str]) -> tuple[str, ...]:
    return architectures.parse(",".join(archs)).archs if archs else ()


_SPARSE = codec.spelled(sparse=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """The options of a build; JSON omits defaults, so that equal options have equal JSON."""

    version: str | None = field(default=None, metadata=codec.spelled(key="wheel-version", sparse=True))
    """The version of the wheel; None means `<general.version>.0.0`."""
    label: bool = field(default=True, metadata=_SPARSE)
    """Whether the version contains the cell, as in `1.0.0+torch213.cxx11.cpu`."""
    policy: str = field(default=MANYLINUX, metadata=_SPARSE)
    """The newest manylinux policy for the tag; a lower one is used if the symbols allow it."""
    only: tuple[str, ...] = field(default=(), metadata=codec.spelled(key="archs", sparse=True, read=_read_archs))
    """The GPUs of a quick build, by architecture; empty for a full build."""
    unique_id: str | None = field(default=None, metadata=_SPARSE)
    """The name of the ops, if not derived from their content."""
    allow_unsafe_flags: bool = field(default=False, metadata=_SPARSE)
    epoch: int = field(default=EPOCH, metadata=codec.spelled(sparse=True, read=_read_epoch))
    """The time stamp of the build, in seconds since 1970."""
    load_test: LoadTestRule | None = field(default=None, metadata=_SPARSE)
    """The rule for a wheel that cannot be imported; None leaves it to build.toml."""
    without: tuple[str, ...] = field(default=(), metadata=_SPARSE)
    """The rules of reproducible builds to leave out, as `builder repro` does; none, for a wheel to deliver."""
    variables: Mapping[str, str] = field(default_factory=dict, metadata=_SPARSE)
    """Additional variables for the build, as `builder repro` sets."""

    def to_json(self) -> dict[str, Any]:
        """Return the options that differ from the default."""
        found: dict[str, Any] = codec.encode(self)
        return found

    @classmethod
    def from_json(cls, table: Mapping[str, Any]) -> "BuildOptions":
        """Read the output of `to_json`, or the options in a flake.

        Raises:
            BuilderError: an option is unknown or invalid.
        """
        known = codec.defaults(cls)
        for name, value in table.items():
            _check(name, value, known)
        return codec.decode(cls, table)


def _check(name: str, value: object, known: Mapping[str, object]) -> None:
    if name not in known:
        guess = nearest(name, known)
        remedy = f"did you mean '{guess}'?" if guess else f"there are {listed(known)}"
        raise BuilderError(f"{quoted(name)} is not an option of a build", help=remedy)
    usual = known[name]
    if isinstance(usual, bool):
        fits, kind = isinstance(value, bool), "true or false"
    elif isinstance(usual, list):
        fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
        kind = "a list of texts"
    elif isinstance(usual, dict):
        fits = isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
        kind = "a table of texts"
    elif name == "load-test":
        rules = [rule.value for rule in LoadTestRule]
        fits, kind = value is None or value in rules, f"one of {listed(rules)}"
    else:
        fits, kind = name == "epoch" or value is None or isinstance(value, str), "a text"
    if not fits:
        raise BuilderError(
            f"the option '{name}' is {json_text.line(value)}, not {kind}", help="correct it in the options of the flake"
        )
