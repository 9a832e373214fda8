"""Builds of a cell as a user runs them: `builder build` in a process of its own, under a setting."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builder.errors import ToolError
from builder.hashes import sha256
from builder.make.reproducible import Rules
from builder.repro.variations import Setting
from builder.run import ask, started

_PACKAGE_ROOT = Path(__file__).resolve().parent.parent.parent
_SPIN = "while True: pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """One wheel, and its digest."""

    wheel: Path
    sha256: str


@dataclass(slots=True, kw_only=True)
class Builder:
    """Builds one cell again and again; counts how often."""

    variant: str
    folder: Path
    environ: Mapping[str, str]
    """The user's environment, which settings change."""
    without: tuple[str, ...] = ()
    """Rules of reproducible builds that are off."""
    options: tuple[str, ...] = ()
    """More options of `builder build`."""
    count: int = field(default=0, init=False)

    def build(self, setting: Setting) -> Build:
        """Build under a setting.

        Raises:
            ToolError: the build fails.
        """
        self.count += 1
        output = self.folder / f"wheel-{self.count}"
        with _busy(setting.burners):
            done = ask(self._command(setting, output), env=self._environ(setting), cwd=setting.cwd, umask=setting.umask)
        wheels = sorted(output.glob("*.whl"))
        if done.returncode != 0 or len(wheels) != 1:
            said = done.stderr[done.stderr.find("error:") :] if "error:" in done.stderr else done.stderr[-2000:]
            raise ToolError(
                f"build {self.count} of {self.variant} failed\n{said.strip()}", help="build it first: builder build"
            )
        return Build(wheel=wheels[0], sha256=sha256(wheels[0].read_bytes()))

    def _command(self, setting: Setting, output: Path) -> list[str]:
        rules = Rules.without(self.without, variables=setting.inside).to_json()
        options = ["--variant", self.variant, "--store", str(setting.store), "--output", str(output), "--quiet"]
        options += ["--rebuild", "--experiment", rules, *self.options]
        options += [] if setting.jobs is None else ["--jobs", str(setting.jobs)]
        cores = [] if setting.cores is None else ["taskset", "--cpu-list", _cores(setting.cores)]
        python = [sys.executable, "-m", "builder", "build", str(setting.kernel)]
        return [*cores, *setting.prefix, *python, *options]

    def _environ(self, setting: Setting) -> dict[str, str]:
        path = os.pathsep.join(filter(None, (str(_PACKAGE_ROOT), self.environ.get("PYTHONPATH"))))
        return {**self.environ, "PYTHONPATH": path, **setting.environ}


def _cores(wanted: int) -> str:
    return ",".join(map(str, sorted(os.sched_getaffinity(0))[:wanted]))


@contextlib.contextmanager
def _busy(processes: int) -> Iterator[None]:
    """Keep cores busy meanwhile."""
    with contextlib.ExitStack() as running:
        for _ in range(processes):
            running.enter_context(started([sys.executable, "-S", "-c", _SPIN]))
        yield
