"""The manylinux policies: what the oldest system of each has, and the one that wheels are built for."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

from builder import resources, toml

MANYLINUX = "manylinux_2_28"
"""The lowest policy of a wheel's tag, that of torch's own wheels: an older system has no torch."""
_NUMBERS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,9}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The symbols and libraries that the oldest system of a manylinux policy has, on one machine."""

    name: str
    """Such as `manylinux_2_28`."""
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
        """Whether its systems have a symbol version; versions of other libraries are not restricted."""
        kind, _, number = version.partition("_")
        if kind not in _table().sets or version in self.named:
            return True
        return _NUMBERS.match(number) is not None and _key(number) <= self.figures.get(kind, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    sets: frozenset[str]
    loaders: frozenset[str]
    loaded: Mapping[str, Mapping[str, tuple[str, ...]]]
    policies: tuple[Policy, ...]


def policies(machine: str) -> tuple[Policy, ...]:
    """Return the policies of a machine, the oldest system first; an unknown machine has none."""
    return tuple(policy for policy in _table().policies if policy.machine == machine)


def loaded(framework: str, backend: str, *, one_python: bool = False) -> tuple[str, ...]:
    """Return patterns of the libraries that a framework has loaded when a kernel is imported."""
    table = _table().loaded.get(framework, {})
    of_python = table.get("one-python", ()) if one_python else ()
    return (*table.get("any", ()), *table.get(backend, ()), *of_python)


def loaders() -> frozenset[str]:
    """Return the names of the dynamic loader itself."""
    return _table().loaders


@cache
def _table() -> _Table:
    """Read the data file, in which each policy states only what changed."""
    data = toml.loads((resources.DATA / "manylinux.toml").read_text(encoding="utf-8"))
    order = [row["name"] for row in data["policy"]]
    figures: dict[str, dict[str, tuple[int, ...]]] = {}
    named: dict[str, set[str]] = {}
    libraries: set[str] = set()
    found: list[Policy] = []
    for row in data["policy"]:
        libraries.update(row.get("libraries", ()))
        for machine in ("x86_64", "aarch64"):
            changed = row.get(machine)
            if changed is None:
                continue
            named.setdefault(machine, set()).update(changed.get("named", ()))
            figures.setdefault(machine, {}).update(
                {kind: _key(version) for kind, version in changed.items() if kind != "named"}
            )
            found.append(
                Policy(
                    name=row["name"],
                    machine=machine,
                    figures=dict(figures[machine]),
                    named=frozenset(named[machine]),
                    libraries=frozenset(libraries),
                    private=_private(data["private"], order=order, policy=row["name"]),
                )
            )
    loaded_by = {
        framework: {backend: tuple(names) for backend, names in table.items()}
        for framework, table in data["loaded"].items()
    }
    return _Table(
        sets=frozenset(data["sets"]), loaders=frozenset(data["loaders"]), loaded=loaded_by, policies=tuple(found)
    )


def _private(rows: Iterable[Mapping[str, object]], *, order: list[str], policy: str) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for row in rows:
        library, symbols = str(row["library"]), row["symbols"]
        if order.index(policy) <= order.index(str(row["through"])) and isinstance(symbols, list):
            found[library] = found.get(library, frozenset()) | frozenset(symbols)
    return found


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
