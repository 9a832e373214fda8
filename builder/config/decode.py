"""Turn a TOML table into a frozen dataclass, by its annotations; report every problem, not only the first."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast

from builder.config import shape
from builder.config.shape import Array, Choice, Constant, Field, Kind, OneOf, Record, Scalar, Table, Tagged
from builder.config.text import KeyPath, Source, dotted
from builder.config.values import Backend, InvalidValueError, Text
from builder.errors import Problem
from builder.wording import listed, nearest, quoted

T = TypeVar("T")


class _Invalid:
    """Stands for an invalid value that has been reported."""


_INVALID = _Invalid()
_LARGEST = 2**63 - 1
"""TOML's integers have 64 bits, but Python reads longer ones."""


@dataclass(frozen=True, slots=True)
class _Findings:
    source: Source
    current: type
    later: str
    old: bool
    """Whether the document is of an older schema, without the new keys."""
    problems: list[Problem] = field(default_factory=list)

    def add(self, code: str, message: str, path: KeyPath, *, key: bool = False, help: str | None = None) -> _Invalid:
        self.problems.append(self.source.problem(code, message, path=path, key=key, help=help))
        return _INVALID


_LATER = "that key came with a later schema: run 'builder update' on the file without it"


def decode(
    cls: type[T], table: Mapping[str, Any], source: Source, *, current: type, old: bool = False, later: str = _LATER
) -> T:
    """Decode the document `table`, whose text is `source`, as a `cls`; an `old` document has none of the new keys.

    A key that only the schema `current` has is reported with the remedy `later`.

    Raises:
        ConfigError: with every problem of the document.
    """
    findings = _Findings(source, current, later, old=old)
    value = _record(cls, table, (), findings)
    if findings.problems:
        raise source.error(*findings.problems)
    return cast("T", value)


def _record(cls: type, table: Mapping[str, Any], path: KeyPath, findings: _Findings) -> object:
    fields = [item for item in shape.fields(cls) if not (item.new and findings.old)]
    known = [key for item in fields if not item.rest for key in (item.key, item.also) if key is not None]
    has_rest = any(item.rest for item in fields)
    meant = {} if has_rest else _unknown(table, known, path, findings)
    values: dict[str, object] = {}
    for item in fields:
        if item.rest:
            rest = {key: value for key, value in table.items() if key not in known}
            values[item.name] = _decode(item.kind, rest, path, findings)
        elif item.key in meant.values() and item.required:
            values[item.name] = _INVALID  # reported under its misspelled name
        else:
            values[item.name] = _value(item, table, path, findings)
    _groups(cls, {*table, *meant.values()}, path, findings)
    if any(value is _INVALID for value in values.values()):
        return _INVALID
    return cls(**values)


def _value(item: Field, table: Mapping[str, Any], path: KeyPath, findings: _Findings) -> object:
    spellings = [key for key in (item.key, item.also) if key is not None and key in table]
    if len(spellings) > 1:
        message = f"{quoted(spellings[1])} and {quoted(spellings[0])} are the same key"
        return findings.add("B015", message, (*path, spellings[1]), key=True, help=f"remove '{spellings[1]}'")
    if spellings:
        return _decode(item.kind, table[spellings[0]], (*path, spellings[0]), findings)
    if item.required:
        added = f"[{item.key}]" if isinstance(item.kind, Record) else f"{item.key} = {shape.example(item.kind)}"
        return findings.add("B011", f"missing key '{item.key}'{_in(path)}", path, help=f"add '{added}'")
    return item.default


def _unknown(table: Mapping[str, Any], known: Sequence[str], path: KeyPath, findings: _Findings) -> dict[str, str]:
    """Report unknown keys; return each clear misspelling with the key that was meant."""
    meant: dict[str, str] = {}
    strangers = [key for key in table if key not in known]
    free = sorted(key for key in known if key not in table)
    for key in strangers:
        guess = nearest(key, free)
        if shape.kind_at(findings.current, (*path, key)) is not None:
            remedy = findings.later
        elif guess is not None:
            meant[key] = guess
            remedy = f"did you mean '{guess}'?"
        else:
            remedy = f"allowed: {listed(sorted(known))}"
        findings.add("B010", f"unknown key {quoted(key)}{_in(path)}", (*path, key), key=True, help=remedy)
    return meant


def _groups(cls: type, keys: Iterable[str], path: KeyPath, findings: _Findings) -> None:
    one = shape.exactly_one(cls)
    group = one or shape.at_most_one(cls)
    present = [key for key in group if key in keys]
    for key in present[1:]:
        message = f"'{key}' beside '{present[0]}'{_in(path)}: only one of {listed(group)} may be"
        findings.add("B015", message, (*path, key), key=True, help=f"remove '{key}' or '{present[0]}'")
    if one and not present:
        example = f"'[{one[0]}]'" if not path else f"'{one[0]}'"
        message = f"one of {listed(one)} is required{_in(path)}"
        findings.add("B016", message, path, help=f"add {example}")
    for key, other in shape.needs(cls).items():
        # If the whole group is missing, that was reported.
        if key in keys and other not in keys and (other not in one or present):
            message = f"'{key}' without '{other}'{_in(path)}"
            findings.add("B011", message, (*path, key), key=True, help=f"add '{other}', or remove '{key}'")


def _decode(kind: Kind, value: Any, path: KeyPath, findings: _Findings) -> object:  # noqa: PLR0911  one for each kind
    match kind:
        case Scalar() if type(value) is _toml_type(kind):  # isinstance takes a boolean for an int
            return _scalar(kind, value, path, findings)
        case Constant() if type(value) is int and value == kind.value:
            return value
        case OneOf(scalars=scalars):
            fitting = (scalar for scalar in scalars if type(value) is _toml_type(scalar))
            if (scalar := next(fitting, None)) is not None:
                return _scalar(scalar, value, path, findings)
        case Array() if isinstance(value, list):
            items = tuple(_decode(kind.item, item, (*path, number), findings) for number, item in enumerate(value))
            return _INVALID if any(item is _INVALID for item in items) else items
        case Choice():
            # Older schemas have only the scalar.
            other = not findings.old and isinstance(value, dict if isinstance(kind.other, Table) else list)
            return _decode(kind.other if other else kind.scalar, value, path, findings)
        case Table() if isinstance(value, dict):
            return _table(kind, value, path, findings)
        case Record() if isinstance(value, dict):
            return _record(kind.type, value, path, findings)
        case Tagged() if isinstance(value, dict):
            return _tagged(kind, value, path, findings)
        case _:
            pass
    return _mistyped(kind, value, path, findings)


def _table(kind: Table, table: Mapping[str, Any], path: KeyPath, findings: _Findings) -> object:
    decoded: dict[object, object] = {}
    for key, value in table.items():
        name = _text(kind.key, key, (*path, key), findings, key=True)
        decoded[name] = _decode(kind.value, value, (*path, key), findings)
    return _INVALID if _INVALID in (*decoded, *decoded.values()) else decoded


def _tagged(kind: Tagged, table: Mapping[str, Any], path: KeyPath, findings: _Findings) -> object:
    variants = dict(kind.variants)
    tag = _tag(kind, table, path, findings)
    own = {key: value for key, value in table.items() if key not in (kind.tag, _misspelt(kind, table))}
    owners = {key: name for name, variant in reversed(kind.variants) for key in _keys(variant)}
    if isinstance(tag, _Invalid):  # the keys that all variants share can be checked without it
        least = min(variants.values(), key=lambda variant: len(_keys(variant)))
        _record(least, {key: own[key] for key in own if key not in owners or key in _keys(least)}, path, findings)
        return _INVALID
    keys = _keys(variants[tag])
    for key in [key for key in own if key in owners and key not in keys]:
        del own[key]
        message = f"key '{key}' is for backend '{owners[key]}', and the backend here is '{tag}'"
        guess = nearest(key, keys)
        remedy = f"remove it, or use '{guess}'" if guess else "remove it, or move it to a kernel table of that backend"
        findings.add("B014", message, (*path, key), key=True, help=remedy)
    return _record(variants[tag], own, path, findings)


def _tag(kind: Tagged, table: Mapping[str, Any], path: KeyPath, findings: _Findings) -> str | _Invalid:
    tag = table.get(kind.tag)
    names = [name for name, _ in kind.variants]
    misspelt = _misspelt(kind, table)
    if misspelt is not None:
        message = f"unknown key {quoted(misspelt)}{_in(path)}"
        return findings.add("B010", message, (*path, misspelt), key=True, help=f"did you mean '{kind.tag}'?")
    if tag is None:
        message = f"missing key '{kind.tag}'{_in(path)}"
        return findings.add("B011", message, path, help=f"add '{kind.tag} = \"…\"', one of {listed(names)}")
    if not isinstance(tag, str):
        return _mistyped(Scalar(str), tag, (*path, kind.tag), findings)
    if tag not in names:
        # A pure-Python backend looks like a misspelling of a backend with components.
        guessable = tag not in [backend.value for backend in Backend]
        name = f"a {kind.tag} of a kernel table"
        return _misnamed(tag, names, name, (*path, kind.tag), findings, guessable=guessable)
    return tag


def _misspelt(kind: Tagged, table: Mapping[str, Any]) -> str | None:
    """Return the key that misspells the tag, if the tag itself is missing."""
    known = {kind.tag, *(key for _, variant in kind.variants for key in _keys(variant))}
    strangers = () if kind.tag in table else tuple(key for key in table if key not in known)
    return next((key for key in strangers if nearest(key, sorted(known)) == kind.tag), None)


@cache
def _keys(cls: type) -> tuple[str, ...]:
    return tuple(item.key for item in shape.fields(cls))


def _scalar(kind: Scalar, value: Any, path: KeyPath, findings: _Findings) -> object:
    if isinstance(value, str):
        before = kind.type.before if findings.old and issubclass(kind.type, Text) else None
        return _text(before or kind.type, value, path, findings)
    least = -_LARGEST if kind.minimum is None else kind.minimum
    if kind.type is bool or least <= value <= _LARGEST:
        return value
    digits = str(value) if abs(value) <= _LARGEST else "one of more digits"
    message = f"'{dotted(path[-1:])}' must be an integer from {least} to {_LARGEST}, found {digits}"
    return findings.add("B012", message, path)


def _toml_type(kind: Scalar) -> type:
    return kind.type if kind.type in (int, bool) else str


def _text(cls: type, text: str, path: KeyPath, findings: _Findings, *, key: bool = False) -> object:
    if issubclass(cls, Enum):
        names = {str(member.value): member for member in cls}
        kind = re.sub("(?<!^)(?=[A-Z])", " ", cls.__name__).lower()  # a LoadTestRule is called a load test rule
        return names.get(text) or _misnamed(text, names, f"a {kind}", path, findings, key=key)
    try:
        return cast("Callable[[str], object]", cls)(text)
    except InvalidValueError as error:
        return findings.add(error.code, str(error), path, key=key, help=error.help)


def _misnamed(
    text: str,
    names: Iterable[str],
    kind: str,
    path: KeyPath,
    findings: _Findings,
    *,
    key: bool = False,
    guessable: bool = True,
) -> _Invalid:
    names = sorted(names)
    guess = nearest(text, names) if guessable else None
    remedy = f"did you mean '{guess}'?" if guess else f"allowed: {listed(names)}"
    return findings.add("B013", f"{quoted(text)} is not {kind}", path, key=key, help=remedy)


def _mistyped(kind: Kind, value: Any, path: KeyPath, findings: _Findings) -> _Invalid:
    remedy = shape.written_as(kind, value, findings.source.raw(path))
    current = shape.kind_at(findings.current, path)
    if isinstance(value, dict) and isinstance(current, Choice) and isinstance(current.other, Table):
        remedy = findings.later.replace("that key", "a table")
    subject = f"'{dotted(path[-1:])}'" if isinstance(path[-1], str) else f"an entry of '{dotted(path[-2:-1])}'"
    message = f"{subject} must be {shape.expected(kind)}, found {shape.type_name(value)}"
    return findings.add("B012", message, path, help=remedy)


def _in(path: KeyPath) -> str:
    return f" in [{dotted(path)}]" if path else ""
