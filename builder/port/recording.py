"""What was recorded of a `setup.py`: the extensions that it asks for on each machine, with the lines that do."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from builder.errors import ToolError
from builder.port.flags import Line
from builder.port.settings import Setting

Text = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """One extension that `setup` is given, with the project's own arguments alone."""

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
    """The lines themselves, where they are known without the arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupCall:
    """What `setup` is given besides extensions."""

    at: str
    texts: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    package_dir: Mapping[str, str] = field(default_factory=dict)
    package_data: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A command or a use of the network while `setup.py` ran."""

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
    failure: str | None = None
    """Why `setup` was not called; None where it was."""
    at: str = ""
    """Where it failed."""
    missing: str | None = None
    """The module whose import failed."""
    written: tuple[str, ...] = ()
    """Files of the tree that the run wrote."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment that the tree reads, each with the line of its first use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Every run of a `setup.py`."""

    runs: tuple[Run, ...]
    pretended: tuple[str, ...] = ()
    """Modules that are not here and were answered by stand-ins."""
    absent: tuple[str, ...] = ()
    """Folders of submodules that were not fetched."""
    given: tuple[str, ...] = ()
    """Names of the variables that `setup.py` was given."""

    @property
    def main(self) -> tuple[Run, ...]:
        """The runs with a CUDA toolkit each that ended well, oldest toolkit first."""
        return tuple(run for run in self.runs if run.setting.is_main and run.failure is None)

    @property
    def best(self) -> Run | None:
        """The run that speaks for the project: that of the newest toolkit, or the first that ended well."""
        ended = [run for run in self.runs if run.failure is None]
        return self.main[-1] if self.main else ended[0] if ended else None


def decode(found: Text, setting: Setting, written: tuple[str, ...]) -> Run:
    """Return the run that the recorder wrote down.

    Raises:
        ToolError: it is not what the recorder writes: `setup.py` can write there, too.
    """
    setup = found.get("setup")
    failure = None if setup is not None else _failure(found)
    missing = found.get("missing")
    return Run(
        setting=setting,
        extensions=tuple(_extension(each) for each in _tables(found.get("extensions"))),
        setup=None if setup is None else _setup(_table(setup)),
        events=tuple(
            Event(kind=_text(each, "kind"), text=_text(each, "text"), at=_text(each, "at"))
            for each in _tables(found.get("events"))
        ),
        failure=failure,
        at=_text(found, "at"),
        missing=missing if isinstance(missing, str) else None,
        written=written,
        variables={name: str(place) for name, place in _table(found.get("variables")).items()},
    )


def _failure(found: Text) -> str:
    how, message = _text(found, "ended"), _text(found, "message")
    match how:
        case "end":
            return "it ended without calling setup()"
        case "exit":
            return f"it ended itself: sys.exit({message})" if message != "None" else "it ended itself: sys.exit()"
        case _:
            return f"it raised {how}: {message}" if message else f"it raised {how}"


def _setup(found: Text) -> SetupCall:
    texts = {name: value for name, value in found.items() if isinstance(value, str) and name != "at"}
    lists = {name: _texts(found, name) for name, value in found.items() if isinstance(value, list)}
    folders = {name: str(value) for name, value in _table(found.get("package_dir")).items()}
    data = _table(found.get("package_data"))
    return SetupCall(
        at=_text(found, "at"),
        texts=texts,
        lists=lists,
        package_dir=folders,
        package_data={name: _texts(data, name) for name in data},
    )


def _extension(found: Text) -> Extension:
    flags = _table(found.get("flags"))
    macros = found.get("define_macros")
    return Extension(
        kind=_text(found, "kind"),
        name=_text(found, "name"),
        at=_text(found, "at"),
        sources=_texts(found, "sources"),
        cxx_flags=_texts(flags, "cxx"),
        nvcc_flags=_texts(flags, "nvcc"),
        define_macros=tuple(_macro(each) for each in (macros if isinstance(macros, list) else ())),
        undef_macros=_texts(found, "undef_macros"),
        include_dirs=_texts(found, "include_dirs"),
        libraries=_texts(found, "libraries"),
        library_dirs=_texts(found, "library_dirs"),
        extra_objects=_texts(found, "extra_objects"),
        link_flags=_texts(found, "link_flags"),
        py_limited_api=found.get("py_limited_api") is True,
    )


def _macro(found: object) -> tuple[str, str | None]:
    match found:
        case [str(name), None]:
            return name, None
        case [str(name), str(value)]:
            return name, value
        case _:
            raise _not_ours()


def _table(found: object) -> Text:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise _not_ours()
    return found


def _tables(found: object) -> Iterator[Text]:
    if not isinstance(found, list):
        raise _not_ours()
    yield from map(_table, found)


def _text(found: Text, name: str) -> str:
    value = found.get(name, "")
    if not isinstance(value, str):
        raise _not_ours()
    return value


def _texts(found: Text, name: str) -> tuple[str, ...]:
    value = found.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _not_ours()
    return tuple(value)


def _not_ours() -> ToolError:
    return ToolError(
        "setup.py wrote over what was recorded of it", help="leave alone what it finds outside of its own folder"
    )
