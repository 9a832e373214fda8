"""Arguments and option types that several commands share."""

import functools
import os
import re
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from builder.cli import completing
from builder.config.values import Backend, LoadTestRule, ToolchainChoice
from builder.errors import BuilderError
from builder.matrix import architectures
from builder.matrix.architectures import TargetGpus
from builder.wording import listed, nearest, quoted

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

PATH = click.Path(path_type=Path)
FOLDER = click.Path(path_type=Path, file_okay=False)

kernel_argument = click.argument("kernel", metavar="[DIR]", default=".", type=PATH, shell_complete=completing.kernels)
"""The kernel's directory, the current one by default."""
wheels_argument = click.argument("wheels", metavar="WHEEL...", nargs=-1, required=True, type=PATH)


def kernel_option(what: str) -> Decorator:
    """Return the option that names the kernel of the judged or published wheels."""
    return click.option("--kernel", type=PATH, shell_complete=completing.kernels, help=what)


ALL = "all"
BACKENDS = tuple(backend.value for backend in Backend)


class Name(click.Choice[str]):
    """One of several names; a misspelled one gives an error with the nearest name."""

    def __init__(self, name: str, choices: tuple[str, ...]) -> None:
        super().__init__(choices)
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return `value` if it is one of the names."""
        name = str(value)
        if name not in self.choices:
            guess = nearest(name, self.choices)
            hint = f"did you mean '{guess}'?" if guess else f"choose from {listed(self.choices)}"
            self.fail(f"{quoted(name)} is not a known {self.name}: {hint}", param, ctx)
        return name


class BackendType(Name):
    """The name of a backend, as a `Backend`."""

    def __init__(self) -> None:
        super().__init__("backend", BACKENDS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the backend that `value` names."""
        return value if isinstance(value, Backend) else Backend(super().convert(value, param, ctx))


class EnumType(click.Choice[str]):
    """One of the values of an enumeration, such as a `LoadTestRule`."""

    def __init__(self, values: type[Enum], *, name: str) -> None:
        super().__init__([value.value for value in values])
        self.values = values
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the member that `value` names."""
        return self.values(super().convert(getattr(value, "value", value), param, ctx))


class Converted(click.ParamType[Any]):
    """A value that a function parses; the function raises an error that says what is wrong."""

    def __init__(self, name: str, parse: Callable[[str], object], *, words: tuple[str, ...] = ()) -> None:
        self.name = name
        self.parse = parse
        self.words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a text; another value was already parsed."""
        try:
            return self.parse(value) if isinstance(value, str) else value
        except (BuilderError, ValueError) as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the words that begin with the incomplete one."""
        return [CompletionItem(word) for word in self.words if word.startswith(incomplete)]


def _python(text: str) -> Path:
    """Return the path of a Python; `3.11` stands for `python3.11`. An unknown Python is left unchanged."""
    if os.sep in text:
        return Path(text)
    import shutil  # noqa: PLC0415  start-up time: it brings every kind of archive

    name = f"python{text}" if re.fullmatch(r"3\.\d+", text) else text
    return Path(shutil.which(name) or name)


def _archs(text: str) -> TargetGpus | str:
    if text in (ALL, architectures.NATIVE):
        return text
    try:
        return architectures.parse(text)
    except BuilderError as error:
        raise ValueError(f"{error.message}: {error.help}") from error


_NUMBER = "[0-9]{1,12}"
"""Enough digits: no disk has more terabytes, and no store is older in seconds."""
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_AGES = {"S": 1, "M": 60, "H": 3600, "D": 86400, "W": 604800}


def _size(written: str) -> int:
    text = written.upper().removesuffix("B").removesuffix("I")
    number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "")
    if unit not in _SIZES or re.fullmatch(_NUMBER, number, re.ASCII) is None or int(number) == 0:
        raise ValueError(f"{written!r} is not a size such as 8G or 512M")
    return int(number) * _SIZES[unit]


def _age(written: str) -> float:
    parts = re.findall(rf"({_NUMBER})([SMHDW])", written.upper(), re.ASCII)
    seconds = sum(int(number) * _AGES[unit] for number, unit in parts)
    if "".join(map("".join, parts)) != written.upper() or seconds == 0:
        raise ValueError(f"{written!r} is not a span of time such as 30d, 12h or 5h30m")
    return float(seconds)


PYTHON = Converted("python", _python)
"""A Python: its path, its name on PATH, or its version."""
ARCHS = Converted("archs", _archs, words=(ALL, architectures.NATIVE))
"""The GPUs that a build is for: `all`, `native`, or their architectures as `TargetGpus`."""
SIZE = Converted("size", _size)
"""A number of bytes, such as `8G`."""
AGE = Converted("age", _age)
"""A span of time, such as `30d`, `12h` or `5h30m`, in seconds."""


def python_option(what: str) -> Decorator:
    """Return the option `--python`, with its purpose in a command."""
    return click.option(
        "--python",
        type=PYTHON,
        metavar="PYTHON",
        shell_complete=completing.files,
        help=f"{what} A path, a name on PATH or X.Y.",
    )


def archs_option(what: str) -> Decorator:
    """Return the option that names the GPUs of a quick build."""
    return click.option("--archs", type=ARCHS, metavar="native|all|LIST", help=what)


def default_store() -> Path:
    """Return the store that BUILDER_STORE names, else `builder` in the user's cache directory."""
    named = os.environ.get("BUILDER_STORE")
    if named:
        return Path(named).absolute()
    cache = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification says to ignore relative paths.
    return (Path(cache) if cache and Path(cache).is_absolute() else _home() / ".cache") / "builder"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # the system does not know the user, as in a container, and HOME is not set
        message = "no home directory is known to keep a store in: name one with --store, BUILDER_STORE or HOME"
        raise click.UsageError(message) from None


store_option = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    default=default_store,
    help="Where environments and built wheels are kept. [env: BUILDER_STORE; default: ~/.cache/builder]",
)
load_test_option = click.option(
    "--load-test",
    type=EnumType(LoadTestRule, name="rule"),
    help="A wheel that cannot be imported: refuse it, note it and keep it, or do not try. "
    "Default: 'build.load-test' of build.toml, else require.",
)
toolchain_option = click.option(
    "--toolchain",
    type=EnumType(ToolchainChoice, name="toolchain"),
    envvar="BUILDER_TOOLCHAIN",
    help="C++ compilers: this machine's, or the pinned ones, which give the same wheel on any Linux. "
    "Default: 'build.toolchain' of build.toml, else system. [env: BUILDER_TOOLCHAIN]",
)
wheel_version_option = click.option(
    "--wheel-version", "version", metavar="X.Y.Z", help="Version of the wheel; the major must be general.version."
)
allow_quick_option = click.option("--allow-quick", is_flag=True, help="Also accept wheels of quick builds (--archs).")


def together(*options: Decorator) -> Decorator:
    """Return several options as one decorator."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        return functools.reduce(lambda made, option: option(made), reversed(options), command)

    return add


def taken(kind: type[Any], given: dict[str, Any]) -> dict[str, Any]:
    """Take the options that are named like fields of a dataclass out of `given`."""
    return {each.name: given.pop(each.name) for each in fields(kind) if each.name in given}
