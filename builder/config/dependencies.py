"""The Python packages that a config can name in `python-depends`."""

from functools import lru_cache
from typing import Any

from builder import toml
from builder.resources import DATA


@lru_cache
def table() -> dict[str, Any]:
    """Return `dependencies.toml`."""
    return toml.loads((DATA / "dependencies.toml").read_text(encoding="utf-8"))


def package(name: str) -> str:
    """Return the distribution on the package index that provides a dependency."""
    for names in table()["python"].values():
        if name in names:
            return str(names[name]["package"])
    raise KeyError(name)


def distribution(name: str) -> str:
    """Return the distribution of a dependency, declared or brought by torch."""
    own = table()["brought"].get(name)
    return package(name) if own is None else str(own["package"])


def modules(name: str) -> tuple[str, ...]:
    """Return the modules that a dependency, declared or brought by torch, is imported as."""
    found = (names[name] for names in (*table()["python"].values(), table()["brought"]) if name in names)
    return tuple(next(found, {"import": ()})["import"])


def brought(backend: str) -> tuple[str, ...]:
    """Return the names of the packages that the torch of a backend depends on, on Linux."""
    return tuple(name for name, facts in table()["brought"].items() if backend in facts["backends"])


def declarations(module: str) -> tuple[tuple[str, str], ...]:
    """Return each table of `python-depends` that can name a module, with the name there."""
    return tuple(
        (where, name)
        for where, names in table()["python"].items()
        for name, facts in names.items()
        if module in facts["import"]
    )


def requirement(name: str) -> str:
    """Return the requirement of a wheel: the distribution, without its unsafe versions."""
    least = at_least(name)
    return package(name) if least is None else f"{package(name)}>={least}"


def at_least(name: str) -> str | None:
    """Return the first safe version of a dependency, if older ones are unsafe."""
    found: dict[str, Any] = next((names[name] for names in table()["python"].values() if name in names), {})
    least: str | None = found.get("at-least")
    return least
