"""The tables `[extension.<name>]`: further libraries of one wheel, each with a binding of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from builder.config.conditions import When
from builder.config.libraries import LibraryName
from builder.config.values import MacroName, MacroValue, ProjectPath, Text


class ExtensionName(Text):
    """The name of an `[extension.<name>]` table: it becomes part of the names of Python modules."""

    __slots__ = ()

    pattern = r"[a-z][a-z0-9_]{0,62}"
    code = "B043"
    kind = "a name of an extension"
    rule = "use up to 63 lower-case letters, digits and '_', a letter first, as in 'moe'"

    @classmethod
    def remedy(cls, text: str) -> str | None:
        """Return the name with the letters that names have."""
        guess = text[:63].lower().replace("-", "_").replace(".", "_").strip("_")
        return f"write '{guess}'" if cls.matches(guess) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """How one more library of the wheel binds to PyTorch."""

    src: tuple[ProjectPath, ...] = ()
    """Sources and headers of the binding, relative to the project root; an entry may be a glob."""
    when: When | None = None
    """Which cells have the library: those in which every entry holds. Elsewhere it is left out with its components, and
    the wheel has no module for it."""
    exclude: tuple[ProjectPath, ...] = ()
    """Files and globs that are taken out of `src`, relative to the project root."""
    include: tuple[ProjectPath, ...] = ()
    """Include directories of the binding sources, relative to the project root."""
    cxx_flags: tuple[str, ...] = ()
    """Compiler flags of the binding sources, for C++ only."""
    defines: Mapping[MacroName, MacroValue] = field(default_factory=dict)
    """Macros of the binding sources: `true` defines one without a value, `false` does not
    define it, a number or a text is its value as it stands."""
    file_flags: Mapping[ProjectPath, tuple[str, ...]] = field(default_factory=dict)
    """Flags of single sources, after all others: a table from a file or a glob to the flags of those that it names."""
    libraries: tuple[LibraryName, ...] = ()
    """Libraries of the toolkit or of the system that this library is linked to, as in `["cublas", "dl"]`; on each
    backend those that it has."""
