"""Where a cell is built in CI: the runner's label and the container's image."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from builder import resources, toml
from builder.ci.plan import RunsOn
from builder.errors import BuilderError
from builder.matrix import Cell
from builder.matrix.rules import minor
from builder.wording import listed, nearest, quoted

# A label ends up in workflow files: nothing that a workflow, YAML or a shell would read as its own syntax.
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runners:
    """The runners and containers of `data/runners.toml`, some replaced by the user's own."""

    own: Mapping[str, str] = field(default_factory=dict)
    """Label by system, in place of the data file's."""
    gitlab: bool = False
    """Take the labels, there called tags, of GitLab and not of GitHub."""
    _known: dict[tuple[str, str, bool], RunsOn] = field(default_factory=dict, init=False, repr=False, compare=False)

    def place(self, cell: Cell) -> RunsOn:
        """Return where `cell` is built.

        Raises:
            BuilderError: no runner is known for its system.
        """
        kind = (cell.compute, cell.system, cell.noarch)
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = RunsOn(runner=self._runner(cell.system), container=_container(cell))
        return found

    def _runner(self, system: str) -> str:
        known = data()["gitlab"]["runner"] if self.gitlab else data()["runner"]
        runner = self.own.get(system) or known.get(system)
        if runner is None:
            raise BuilderError(f"no runner is known for {system}", help=f"pass --runner {system}=LABEL")
        return str(runner)


@cache
def data() -> dict[str, Any]:
    """Return `data/runners.toml`."""
    return toml.loads((resources.DATA / "runners.toml").read_text(encoding="utf-8"))


def parse(settings: tuple[str, ...], *, gitlab: bool = False) -> Runners:
    """Read `SYSTEM=LABEL` settings.

    Raises:
        BuilderError: a setting names no known system, or a label that a workflow file could misread.
    """
    own: dict[str, str] = {}
    systems = tuple(data()["runner"]) if settings else ()
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


def _container(cell: Cell) -> str | None:
    if cell.noarch or cell.toolkit is None:
        return None  # Python files are built by any machine: no toolkit, no container
    wanted = (cell.backend.value, cell.system, str(minor(cell.toolkit)))
    images = (one["image"] for one in data()["container"] if (one["backend"], one["system"], one["toolkit"]) == wanted)
    return next(images, None)
