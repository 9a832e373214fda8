"""The recording of a `setup.py`: its extensions on each machine, and the lines that create them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from builder import codec
from builder.errors import ToolError
from builder.port.flags import Line
from builder.port.settings import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """One extension that `setup` receives, with only the project's own arguments."""

    kind: str
    name: str
    at: str
    """`file:line` of the call."""
    sources: tuple[str, ...]
    cxx_flags: tuple[str, ...] = ()
    nvcc_flags: tuple[str, ...] = ()
    define_macros: tuple[tuple[str, str | None], ...] = ()
    undef_macros: tuple[str, ...] = ()
    include_dirs: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    library_dirs: tuple[str, ...] = ()
    extra_objects: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    py_limited_api: bool = False
    lines: Mapping[str, Line] | None = None
    """The compile lines, if they are known without the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupCall:
    """The arguments of `setup` other than extensions."""

    at: str
    texts: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    package_dir: Mapping[str, str] = field(default_factory=dict)
    package_data: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A command or a network access while `setup.py` ran."""

    kind: str
    text: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a `setup.py`."""

    setting: Setting
    extensions: tuple[Extension, ...] = ()
    setup: SetupCall | None = None
    events: tuple[Event, ...] = ()
    failure: str | None
    """Why `setup` was not called; None if it was called."""
    at: str = ""
    """The `file:line` that failed."""
    missing: str | None = None
    """The module whose import failed."""
    written: tuple[str, ...] = ()
    """Files of the tree that the run wrote."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment that the tree reads, each with the line of its first use."""
    answered: Mapping[str, str] = field(default_factory=dict)
    """What the tree asks of torch and a stand-in answers without knowing it, each with the line of its first use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Every run of a `setup.py`."""

    runs: tuple[Run, ...]
    pretended: tuple[str, ...] = ()
    """Missing modules that stand-ins replaced."""
    absent: tuple[str, ...] = ()
    """Folders of submodules that were not fetched."""
    given: tuple[str, ...] = ()
    """Names of the variables given to `setup.py`."""

    @property
    def main(self) -> tuple[Run, ...]:
        """The successful runs with a CUDA toolkit, oldest toolkit first."""
        return tuple(run for run in self.runs if run.setting.is_main and run.failure is None)

    @property
    def best(self) -> Run | None:
        """The run that represents the project: the one with the newest toolkit, or the first successful one."""
        ended = [run for run in self.runs if run.failure is None]
        return self.main[-1] if self.main else ended[0] if ended else None


def decode(found: Mapping[str, object], setting: Setting, written: tuple[str, ...]) -> Run:
    """Read a run from the recorder's output.

    Raises:
        ToolError: the output is invalid: `setup.py` can write there, too.
    """
    try:
        return codec.decode(Run, {**found, "setting": codec.encode(setting), "written": list(written)})
    except ValueError:
        raise ToolError(
            "setup.py wrote over what was recorded of it", help="leave alone what it finds outside of its own folder"
        ) from None
