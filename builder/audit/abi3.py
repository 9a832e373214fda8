"""Check which part of CPython's C API a library uses: the tag of its wheel decides what is allowed."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from builder import resources, toml
from builder.audit.report import Finding
from builder.audit.subject import Subject
from builder.config.values import Version

RULE = "abi3"

_DEFAULT = Version("3.9")
_INTERPRETER = re.compile(r"cp3([0-9]+)$")


@cache
def stable_symbols() -> Mapping[str, Version]:
    """Return each symbol of the stable ABI, with the version of CPython that added it."""
    table = toml.loads((resources.DATA / "abi3.toml").read_text(encoding="utf-8"))
    return {symbol: Version(version) for version, symbols in table.items() for symbol in symbols}


def check(subject: Subject) -> Iterator[Finding]:
    """Report CPython symbols outside the limited API of the tag's lowest Python; if it names none, report all.

    A wheel for one Python may use the whole API of that Python, which must be the promised one.
    """
    python, variant = subject.python, subject.plan.variant
    if variant is not None and variant.python != python and subject.libraries:
        promised, said = variant.python or "every Python", python or "that it is for every Python"
        why = f"the build promised a library for {promised}, and the tag says {said}"
        yield Finding(f"{subject.dist_info}/WHEEL", RULE, python or "python", why)
    if python is not None:
        return
    interpreters = (_INTERPRETER.match(tag.split("-", 1)[0]) for tag in subject.tags)
    floor = min((Version(f"3.{match[1]}") for match in interpreters if match), default=_DEFAULT)
    for library in subject.libraries:
        for symbol in library.extension.undefined:
            if not symbol.name.startswith(("Py", "_Py")) or symbol.name.startswith("PyInit_"):
                continue
            if subject.needs_no_python:
                why = "it is of CPython's C API, and the wheel's tag says that it needs nothing of Python"
                yield Finding(library.name, RULE, symbol.name, why, "tag it cp39-abi3")
                continue
            added = stable_symbols().get(symbol.name)
            if added is not None and added <= floor:
                continue
            why = (
                "it is not in the stable ABI of CPython"
                if added is None
                else f"it is in the stable ABI since CPython {added}, and the wheel is for {floor} and later"
            )
            remedy = (
                f"define Py_LIMITED_API as 0x{floor.major:02x}{floor.minor:02x}0000 and use what it offers, or "
                'build for each Python, with python-abi = "cpython" in [torch] of build.toml'
            )
            yield Finding(library.name, RULE, symbol.name, why, remedy)
