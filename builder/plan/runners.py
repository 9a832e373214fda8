"""Where a cell is built in CI: the runner's label and the container's image."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from builder import _toml, resources
from builder.candidates import minor
from builder.config import Backend
from builder.errors import BuilderError
from builder.matrix import Cell
from builder.plan import Place
from builder.spelling import listed, nearest, quoted

# A label ends up in workflow files: nothing that a workflow, YAML or a shell would read as its own syntax.
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runners:
    """The runners and containers of `data/runners.toml`, some replaced by the user's own."""

    own: Mapping[str, str] = field(default_factory=dict)
    """Label by system, in place of the data file's."""
    gitlab: bool = False
    """Take the labels, there called tags, of GitLab and not of GitHub."""

    def place(self, cell: Cell) -> Place:
        """Return where `cell` is built.

        Raises:
            BuilderError: no runner is known for its system.
        """
        known = data()["gitlab"]["runner"] if self.gitlab else data()["runner"]
        runner = self.own.get(cell.system) or known.get(cell.system)
        if runner is None:
            raise BuilderError(f"no runner is known for {cell.system}", help=f"pass --runner {cell.system}=LABEL")
        # Python files are built by any machine: no toolkit, no container.
        toolkit = None if cell.noarch else cell.toolkit
        return _place(runner, cell.backend, cell.system, toolkit)


@cache
def data() -> dict[str, Any]:
    """Return `data/runners.toml`."""
    return _toml.loads((resources.DATA / "runners.toml").read_text(encoding="utf-8"))


def parse(settings: tuple[str, ...], *, gitlab: bool = False) -> Runners:
    """Read `SYSTEM=LABEL` settings.

    Raises:
        BuilderError: a setting names no known system, or a label that a workflow file could misread.
    """
    own: dict[str, str] = {}
    systems = tuple(data()["runner"])
    for setting in settings:
        system, equals, label = setting.partition("=")
        if not equals or system not in systems:
            guess = nearest(system, systems)
            remedy = f"did you mean '{guess}'?" if guess else f"systems with a runner: {listed(systems)}"
            raise BuilderError(f"{quoted(setting)} is not SYSTEM=LABEL of a known runner", help=remedy)
        if _LABEL.fullmatch(label) is None:
            raise BuilderError(
                f"{quoted(label)} is not the label of a runner",
                help="use letters, digits, '_', '.' and '-', at most 128, as in 'ubuntu-24.04'",
            )
        own[system] = label
    return Runners(own=own, gitlab=gitlab)


@cache
def _place(runner: str, backend: Backend, system: str, toolkit: str | None) -> Place:
    wanted = (backend.value, system, None if toolkit is None else str(minor(toolkit)))
    images = (one["image"] for one in data()["container"] if (one["backend"], one["system"], one["toolkit"]) == wanted)
    return Place(runner=runner, container=next(images, None))
