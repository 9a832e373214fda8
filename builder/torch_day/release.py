"""A release of torch: the builds that are published, the pins of their environments, and what the wheels say."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from builder import json_text
from builder.config import Backend, Version
from builder.matrix.variant import compute_name
from builder.pins import Part, PinnedWheel

ORDER = (Backend.CPU, Backend.CUDA, Backend.ROCM, Backend.XPU, Backend.METAL)
"""How the rows of a torch follow each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One way torch is built, for one system."""

    system: str
    backend: Backend
    toolkit: str | None
    source: str
    """What says so."""

    @property
    def compute(self) -> str:
        """The toolkit as variant names spell it."""
        return compute_name(self.backend, self.toolkit)

    @property
    def place_in_file(self) -> tuple[int, tuple[int, ...], int]:
        """Where its row stands among those of its torch."""
        systems = ("x86_64-linux", "aarch64-linux", "aarch64-darwin")
        toolkit = tuple(map(int, (self.toolkit or "0").split(".")))
        return ORDER.index(self.backend), toolkit, systems.index(self.system)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """All that is proposed for a torch comes from here."""

    version: str
    """As it is published: `2.15.0`."""
    pythons: tuple[str, ...]
    """Tags of the Pythons with wheels on the default index."""
    builds: tuple[Build, ...]
    parts: tuple[Part, ...]
    """What is pinned for it."""
    wheels: Mapping[str, PinnedWheel]
    file: str
    """The wheel that the rest was read from."""
    standard: int | None
    """The C++ standard of the headers."""
    python_headers: tuple[str, ...]
    shim: Mapping[str, tuple[str, ...]]
    """Library → C functions of the stable ABI."""
    notes: tuple[str, ...] = field(default=())
    """What a person has to look at."""
    away: tuple[str, ...] = field(default=())
    """Indexes that did not answer, each with the reason."""

    @property
    def minor(self) -> Version:
        """The version as rows have it: `2.15`."""
        return Version(".".join(self.version.split(".")[:2]))


def to_json(release: Release) -> str:
    """Spell a release as a document, without the addresses of files."""
    table = asdict(release)
    table["builds"] = [{**asdict(build), "backend": build.backend.value} for build in release.builds]
    return json_text.document(table, indent=1, ordered=True)


def from_json(text: str) -> Release:
    """Read what `to_json` wrote."""
    table: dict[str, Any] = json.loads(text)
    return Release(
        version=table["version"],
        pythons=tuple(table["pythons"]),
        builds=tuple(Build(**{**build, "backend": Backend(build["backend"])}) for build in table["builds"]),
        parts=tuple(map(_part, table["parts"])),
        wheels={file: PinnedWheel(**facts) for file, facts in table["wheels"].items()},
        file=table["file"],
        standard=table["standard"],
        python_headers=tuple(table["python_headers"]),
        shim={library: tuple(names) for library, names in table["shim"].items()},
        notes=tuple(table["notes"]),
        away=tuple(table["away"]),
    )


def _part(table: Mapping[str, Any]) -> Part:
    wheels = {
        system: {python: tuple(files) for python, files in of_system.items()}
        for system, of_system in table["wheels"].items()
    }
    lists = {"requires", "compute", "only", "wheels"}
    rest = {key: value for key, value in table.items() if key not in lists}
    return Part(
        requires=tuple(table["requires"]),
        compute=tuple(table["compute"]),
        only=tuple(table["only"]),
        wheels=wheels,
        **rest,
    )
