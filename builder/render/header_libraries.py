"""The header-only libraries that components of a backend depend on."""

from functools import lru_cache
from typing import Any

from builder import toml
from builder.config import Backend, Config, dependencies
from builder.render.arguments import Arguments
from builder.resources import DATA


def of(config: Config, backend: Backend) -> tuple[Arguments, ...]:
    """Return the arguments of `kernel_headers_find` for each library, in the order in which components name them."""
    names = (name for component in config.components(backend).values() for name in component.depends)
    return tuple(_arguments(name) for name in dict.fromkeys(names) if name != "torch")


def _arguments(name: str) -> Arguments:
    version = dependencies.table()["component"][name].get("cutlass")
    library = "cutlass" if version else name
    facts = _facts()[library]
    single = {
        "NAME": library,
        **({"VERSION": version} if version else {}),
        "PACKAGE": facts["package"],
        "VARIABLE": facts["variable"],
        "SOURCE": facts["source"],
        "CONTAINS": facts["contains"],
        **_pin(facts, version),
    }
    return {**single, "INCLUDE": (tuple(facts["include"]),)}


def _pin(facts: dict[str, Any], version: str | None) -> dict[str, str]:
    """Return where a version is fetched from, and its hash."""
    wheel = facts.get("wheels", {}).get(version)
    if wheel is not None:
        return {"WHEEL": wheel["requirement"], "SHA256": wheel["sha256"], "WHEEL_ROOT": facts["wheel-root"]}
    commit = facts.get("commits", {}).get(version)
    return {} if commit is None else {"COMMIT": commit}


def variables(config: Config, backend: Backend) -> tuple[str, ...]:
    """Return the variables of the environment that name the folders of those libraries."""
    return tuple(str(arguments["VARIABLE"]) for arguments in of(config, backend))


@lru_cache
def _facts() -> dict[str, Any]:
    return toml.loads((DATA / "cutlass.toml").read_text(encoding="utf-8"))
