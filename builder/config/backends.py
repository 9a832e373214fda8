"""What is known of each backend: the tables of `data/backends.toml`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from builder import toml
from builder.resources import DATA


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendFacts:
    """The facts of one backend; the data file says what each means."""

    title: str
    noarch_variant: str
    components: bool = False
    ctypes: bool = False
    toolkit_prefix: str | None = None
    device_code: bool = False
    sources: tuple[str, ...] = ()
    dispatch_key: str = "CPU"
    torch_library: str | None = None
    torch_device: str | None = None
    macos: str | None = None
    file_memory: Mapping[str, float] = field(default_factory=dict)
    init: str


@cache
def table() -> Mapping[str, BackendFacts]:
    """Return the facts of every backend by its name, in the file's order."""
    tables = toml.loads((DATA / "backends.toml").read_text(encoding="utf-8"))
    return {name: _facts(name, given) for name, given in tables.items()}


def _facts(name: str, given: Mapping[str, Any]) -> BackendFacts:
    values: dict[str, Any] = {
        key.replace("-", "_"): tuple(value) if isinstance(value, list) else value for key, value in given.items()
    }
    return BackendFacts(**{"init": name, **values})
