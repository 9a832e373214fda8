"""The macros of `defines` as options of compilers, each spelled so that its compiler gets the value as it stands."""

from collections.abc import Iterator, Mapping

from builder.config.text import KeyPath
from builder.config.values import MacroName, MacroValue

Definitions = Mapping[MacroName, MacroValue]

# nvcc takes a backslash off what follows it, splits at commas, and hands the rest to a shell inside of double quotes.
_NVCC = str.maketrans({"\\": r"\\\\", "$": r"\\$", "`": r"\\`", '"': r"\"", ",": r"\,"})


def options(given: Definitions) -> tuple[str, ...]:
    """Return the options of a compiler that is run as it is written."""
    return tuple(option for name, value in given.items() if (option := _option(name, value)) is not None)


def nvcc_options(given: Definitions) -> tuple[str, ...]:
    """Return the options of nvcc for the same macros."""
    return tuple(option.translate(_NVCC) for option in options(given))


def places(given: Definitions, table: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield each option with the place of its macro in the config."""
    for name, value in given.items():
        option = _option(name, value)
        if option is not None:
            yield (*table, "defines", name), option


def _option(name: str, value: MacroValue) -> str | None:
    if value is False:
        return None
    return f"-D{name}" if value is True else f"-D{name}={value}"
