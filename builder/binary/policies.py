"""The manylinux policies: the symbols of each policy's oldest system, and the lowest policy that libraries meet."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from builder import resources, toml
from builder.binary.extension import Extension

_NUMBERS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,9}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The symbols and libraries of the oldest system of a manylinux policy, on one machine."""

    name: str
    """The name, such as `manylinux_2_28`."""
    machine: str
    figures: Mapping[str, tuple[int, ...]]
    """Symbol set → its newest version."""
    named: frozenset[str] = frozenset()
    libraries: frozenset[str] = frozenset()
    private: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        """The platform tag, such as `manylinux_2_28_x86_64`."""
        return f"{self.name}_{self.machine}"

    def admits(self, version: str) -> bool:
        """Whether the policy's systems have a symbol version; versions of unknown libraries are allowed."""
        kind, _, number = version.partition("_")
        if kind not in _table()["sets"] or version in self.named:
            return True
        return _NUMBERS.match(number) is not None and _key(number) <= self.figures.get(kind, ())


def policies(machine: str) -> tuple[Policy, ...]:
    """Return the policies of a machine, the oldest system first; empty for an unknown machine."""
    return tuple(policy for policy in _policies() if policy.machine == machine)


def loaded(framework: str, backend: str, *, one_python: bool = False) -> tuple[str, ...]:
    """Return patterns of the libraries that a framework has loaded before a kernel is imported."""
    table = _table()["loaded"].get(framework, {})
    of_python = table.get("one-python", ()) if one_python else ()
    return (*table.get("any", ()), *table.get(backend, ()), *of_python)


def loaders() -> tuple[str, ...]:
    """Return the names of the dynamic loader."""
    return tuple(_table()["loaders"])


def obstacles(extension: Extension, policy: Policy) -> Iterator[tuple[str, str]]:
    """Yield each symbol, or the bare version, that `policy` lacks, with the reason."""
    users: dict[tuple[str | None, str], list[str]] = {}
    for symbol in extension.undefined:
        if symbol.version is not None:
            users.setdefault((symbol.library, symbol.version), []).append(symbol.name)
    for library, version in extension.versions:
        if policy.admits(version):
            continue
        for name in sorted(users.get((library, version), [""])):
            wanted = f"{name}@{version}" if name else version
            yield wanted, f"{policy.name} has no {version} in {library}"
    for library in dict.fromkeys(extension.needed):
        private = policy.private.get(library, frozenset())
        for symbol in extension.undefined if private else ():
            if symbol.name in private:
                yield symbol.name, f"it is private to some versions of {library}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LowestPolicy:
    """The lowest policy that libraries meet, and the symbols that the next lower one lacks."""

    policy: Policy | None
    """None if the libraries meet no policy."""
    below: Policy | None
    """The next lower policy; None if there is none."""
    offending: tuple[str, ...] = ()
    """Each symbol that `below` lacks, as `name@VERSION`."""

    @property
    def name(self) -> str:
        """The name of the policy; `linux` if none is met."""
        return "linux" if self.policy is None else self.policy.name


def lowest_policy(extensions: Iterable[Extension], machine: str) -> LowestPolicy:
    """Return the lowest policy that the symbols of all `extensions` allow."""
    together, best = tuple(extensions), None
    for policy in reversed(policies(machine)):
        offending = tuple(sorted({symbol for extension in together for symbol, _ in obstacles(extension, policy)}))
        if offending:
            return LowestPolicy(policy=best, below=policy, offending=offending)
        best = policy
    return LowestPolicy(policy=best, below=None)


@cache
def _table() -> Mapping[str, Any]:
    return toml.loads((resources.DATA / "manylinux.toml").read_text(encoding="utf-8"))


@cache
def _policies() -> tuple[Policy, ...]:
    """Return all policies; in the data file, each one states only the changes from the one before."""
    rows = _table()["policy"]
    order = [row["name"] for row in rows]
    figures: dict[str, dict[str, tuple[int, ...]]] = {}
    named: dict[str, set[str]] = {}
    libraries: set[str] = set()
    found: list[Policy] = []
    for position, row in enumerate(rows):
        libraries.update(row.get("libraries", ()))
        private: dict[str, frozenset[str]] = {}
        for each in _table()["private"]:
            if position <= order.index(each["through"]):
                private[each["library"]] = private.get(each["library"], frozenset()).union(each["symbols"])
        for machine in row.keys() & {"x86_64", "aarch64"}:
            named.setdefault(machine, set()).update(row[machine].get("named", ()))
            versions = {kind: _key(version) for kind, version in row[machine].items() if kind != "named"}
            figures.setdefault(machine, {}).update(versions)
            found.append(
                Policy(
                    name=row["name"],
                    machine=machine,
                    figures=dict(figures[machine]),
                    named=frozenset(named[machine]),
                    libraries=frozenset(libraries),
                    private=private,
                )
            )
    return tuple(found)


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
