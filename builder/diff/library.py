"""Compare the libraries of two builds, what installers are told of them, and the tools that made them."""

import re
from collections.abc import Iterator, Mapping

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from builder import json_text
from builder.audit import subject as audited
from builder.binary.demangled import demangled
from builder.diff.changes import FactChange, from_tables
from builder.diff.facts import Facts, LinkedLibrary
from builder.matrix import architectures
from builder.matrix.variant import Variant
from builder.wording import size

PART, IDENTITY = "library", "identity"
_PLATFORM = re.compile(r"(manylinux|musllinux|macosx)_([0-9]+)_([0-9]+)_(.+)")
_PYTHON = re.compile(r"(cp|py)([0-9])([0-9]*)")
_DIGESTS = ("digest", "id")
"""Keys of metadata.json that only follow from others."""


def compare(before: Facts, after: Facts, variants: tuple[Variant | None, Variant | None]) -> Iterator[FactChange]:
    """Yield the changes for installers first, then those of each library."""
    yield from _framework(*variants)
    yield from _tags(before, after)
    yield from _requirements(before, after)
    yield from _findings(before, after)
    if before.kernel.exports or after.kernel.exports:
        yield from _promised(before, after)
    old, new = (_license(each) for each in (before, after))
    if old != new:
        yield FactChange(part=PART, subject="license", before=old, after=new)
    for name in sorted({*before.libraries, *after.libraries}):
        yield from _library(name, before, after)


def identity(before: Facts, after: Facts) -> Iterator[FactChange]:
    """Yield the differing facts that the wheels have about their builds."""
    yield from from_tables(IDENTITY, _identity(before), _identity(after))


def _framework(before: Variant | None, after: Variant | None) -> Iterator[FactChange]:
    """Yield the framework and the toolkit, where wheels of two variants are compared."""
    if before is None or after is None or str(before) == str(after):
        return
    breaks = ""
    if (before.framework, before.backend, before.system) != (after.framework, after.backend, after.system):
        breaks = "it is for another framework, backend or system"
    elif before.stable and (not after.stable or _older(before.version, after.version)):
        breaks = "the stable ABI of an older torch is promised no more"
    elif not before.stable and not after.stable and before.version != after.version:
        breaks = "it is for another version of the framework alone"
    yield FactChange(part=PART, subject="variant", before=str(before), after=str(after), breaks=breaks)


def _older(one: object, other: object) -> bool:
    return Version(str(one)) < Version(str(other))


def _tags(before: Facts, after: Facts) -> Iterator[FactChange]:
    if before.tags == after.tags:
        return
    lost = [tag for tag in before.tags if not any(_serves(other, tag) for other in after.tags)]
    breaks = f"systems or Pythons of '{lost[0]}' are lost" if lost else ""
    yield FactChange(part=PART, subject="tags", before=" ".join(before.tags), after=" ".join(after.tags), breaks=breaks)


def _serves(tag: str, wanted: str) -> bool:
    """Whether a wheel with a tag is installed wherever one with the wanted tag is."""
    (python, abi, platform), (other, other_abi, other_platform) = (each.split("-", 2) for each in (tag, wanted))
    if "any" in {platform, other_platform} or "none" in {abi, other_abi}:
        same = platform == "any" or _newest(platform, other_platform)
        return same and abi in {other_abi, "none"}
    pythons = python == other or (abi == other_abi == "abi3" and _python(python) <= _python(other))
    return pythons and abi == other_abi and _newest(platform, other_platform)


def _python(text: str) -> tuple[int, int]:
    match = _PYTHON.fullmatch(text)
    return (int(match[2]), int(match[3] or 0)) if match else (0, 0)


def _newest(platform: str, wanted: str) -> bool:
    """Whether a platform is the wanted one, or an older system of its kind, on which a wheel needs less."""
    one, other = _PLATFORM.fullmatch(platform), _PLATFORM.fullmatch(wanted)
    if one is None or other is None or (one[1], one[4]) != (other[1], other[4]):
        return platform == wanted
    return (int(one[2]), int(one[3])) <= (int(other[2]), int(other[3]))


def _requirements(before: Facts, after: Facts) -> Iterator[FactChange]:
    old, new = _required(before), _required(after)
    for name in sorted({*old, *new}):
        one, other = old.get(name), new.get(name)
        if str(one) == str(other):
            continue
        breaks = ""
        if one is None:
            breaks = "it is required, and was not"
        elif other is not None and _narrower(one.specifier, other.specifier):
            breaks = "versions that were enough are not any more"
        yield FactChange(part=PART, subject=name, before=str(one or ""), after=str(other or ""), breaks=breaks)
    old_python, new_python = (" ".join(each.fields.get("Requires-Python", ())) for each in (before, after))
    if old_python != new_python:
        try:
            lost = _narrower(SpecifierSet(old_python), SpecifierSet(new_python))
        except InvalidSpecifier:
            lost = True
        breaks = "versions of Python are lost" if lost else ""
        yield FactChange(part=PART, subject="Requires-Python", before=old_python, after=new_python, breaks=breaks)


def _required(facts: Facts) -> Mapping[str, Requirement]:
    found = filter(None, map(audited.requirement, facts.fields.get("Requires-Dist", ())))
    return {canonicalize_name(each.name): each for each in found}


def _narrower(before: SpecifierSet, after: SpecifierSet) -> bool:
    """Whether a version that the first set allows, at or beside a bound of either, is not in the second."""
    bounds = {Version(clause.version.removesuffix(".*")) for each in (before, after) for clause in each}
    near = {Version("0"), Version("99999")}
    for bound in bounds:
        last = bound.release[-1]
        head = ".".join(map(str, bound.release[:-1]))
        near |= {bound, Version(f"{bound.base_version}.0.1"), Version(f"{bound.base_version}.99")}
        near |= {Version(".".join(filter(None, (head, str(each))))) for each in (last + 1, max(last - 1, 0))}
    return any(version in before and version not in after for version in near)


def _findings(before: Facts, after: Facts) -> Iterator[FactChange]:
    """Yield what the audit finds wrong in the second build alone, such as a budget that a function exceeds."""
    known = {(rule, symbol) for rule, symbol, _ in before.findings}
    for rule, symbol, why in after.findings:
        if (rule, symbol) not in known:
            yield FactChange(part=PART, subject=symbol, after=why, breaks=f"the audit finds it, by its rule '{rule}'")


def _promised(before: Facts, after: Facts) -> Iterator[FactChange]:
    """Yield the functions that a plain library promises no more, or promises anew."""
    old, new = (set(each.kernel.exports) for each in (before, after))
    for name in sorted(old ^ new):
        gone = name in old
        yield FactChange(
            part=PART,
            subject=name,
            before="exported" if gone else "",
            after="" if gone else "exported",
            breaks="the library promised this function" if gone else "",
        )


def _license(facts: Facts) -> str:
    return " ".join((*facts.fields.get("License-Expression", ()), *facts.fields.get("License", ())))


def _library(name: str, before: Facts, after: Facts) -> Iterator[FactChange]:
    old, new = before.libraries.get(name), after.libraries.get(name)
    if old is None or new is None:
        yield FactChange(part=PART, subject=name, before="there" if old else "", after="there" if new else "")
        return
    one, other = (_symbols(each) for each in (old, new))
    sizes = ({each.what: size(each.size) for each in facts.code.get(name, ())} for facts in (before, after))
    yield from from_tables(PART, one, other)
    yield from from_tables(PART, *({f"{name}, {what}": shown for what, shown in each.items()} for each in sizes))


def _symbols(library: LinkedLibrary) -> dict[str, str]:
    """Return what a library needs and exports, each with a word; of symbol versions, the newest of each library."""
    found = {f"needs {each}": "yes" for each in library.needed}
    newest: dict[str, str] = {}
    for _, version in library.versions:
        kind, _, number = version.partition("_")
        if kind not in newest or architectures.natural(newest[kind]) < architectures.natural(number):
            newest[kind] = number
    found |= {f"newest {kind} of its symbols": number for kind, number in newest.items()}
    found |= {f"exports {demangled(each)}": "yes" for each in library.exports}
    return found | {f"uses {demangled(each)}": "yes" for each in library.imports}


def _identity(facts: Facts) -> dict[str, str]:
    """Return what a wheel says of its build, by the keys of its metadata.json."""
    table = {key: value for key, value in facts.metadata.items() if key not in _DIGESTS}
    options = sorted({each.function.options for each in facts.functions if each.function.options})
    files = {f"file {name}": digest for name, digest in facts.kernel.digests.items() if name.endswith(".py")}
    materials = {f"material {_without_version(each)}": each for each in facts.materials}
    return {**dict(_flat(table, "")), **files, **materials, **({"ptxas": "; ".join(options)} if options else {})}


def _without_version(address: str) -> str:
    return address.partition("?")[0].rpartition("@")[0] or address


def _flat(value: Mapping[str, object], prefix: str) -> Iterator[tuple[str, str]]:
    for name, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", inner if isinstance(inner, str) else json_text.line(inner)
