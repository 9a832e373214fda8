"""Arguments and option types that several commands share."""

import functools
import os
import re
import shutil
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from builder.cli import completing
from builder.compile_cache import Access, CacheOptions
from builder.config.values import Backend, LoadTestRule, ToolchainChoice
from builder.errors import BuilderError
from builder.make.part import Part
from builder.matrix import architectures
from builder.wording import listed, nearest, quoted

kernel_argument = click.argument(
    "kernel", metavar="[DIR]", default=".", type=click.Path(path_type=Path), shell_complete=completing.kernels
)
"""The kernel's directory, the current one by default."""


ALL = "all"


class Name(click.ParamType[str]):
    """One of several names; the nearest is named where one is misspelled."""

    def __init__(self, name: str, choices: tuple[str, ...]) -> None:
        self.name = name
        self.choices = choices

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return `value` if it is one of the names."""
        name = str(value)
        if name not in self.choices:
            guess = nearest(name, self.choices)
            hint = f"did you mean '{guess}'?" if guess else f"choose from {listed(self.choices)}"
            self.fail(f"{quoted(name)} is not a known {self.name}: {hint}", param, ctx)
        return name

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the names that begin so."""
        return [CompletionItem(name) for name in self.choices if name.startswith(incomplete)]

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002  click's signature
        """Return the word that stands for the value in a help text."""
        return f"[{'|'.join(self.choices)}]"


class BackendType(Name):
    """The name of a backend, as a `Backend`."""

    def __init__(self) -> None:
        super().__init__("backend", tuple(backend.value for backend in Backend))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the backend that `value` names."""
        if isinstance(value, Backend):
            return value
        return Backend(super().convert(value, param, ctx))


class BackendsType(Name):
    """The name of a backend, or `all`."""

    def __init__(self) -> None:
        super().__init__("backend", (*(backend.value for backend in Backend), ALL))


class PythonType(click.ParamType[Path]):
    """A Python: its path, its name on PATH, or its version."""

    name = "python"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:  # noqa: ARG002
        """Return its path; `3.11` stands for `python3.11`. One that is not found is left as it is."""
        if os.sep in str(value):
            return Path(value)
        name = f"python{value}" if _PYTHON_VERSION.fullmatch(str(value)) else str(value)
        return Path(shutil.which(name) or name)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Let the shell complete a path."""
        return [CompletionItem(incomplete, type="file")]


_PYTHON_VERSION = re.compile(r"3\.\d+")


def python_option(text: str) -> Callable[[Any], Any]:
    """Return the option `--python`, with what it is for in a command."""
    return click.option("--python", type=PythonType(), metavar="PYTHON", help=f"{text} A path, a name on PATH or X.Y.")


def default_store() -> Path:
    """Return the store that BUILDER_STORE names, else `builder` in the user's cache directory."""
    named = os.environ.get("BUILDER_STORE")
    if named:
        return Path(named).absolute()
    cache = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification has relative paths ignored.
    return (Path(cache) if cache and Path(cache).is_absolute() else _home() / ".cache") / "builder"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # a user whom the system does not know, as in a container, and no HOME
        message = "no home directory is known to keep a store in: name one with --store, BUILDER_STORE or HOME"
        raise click.UsageError(message) from None


store_option = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    default=default_store,
    help="Where environments and built wheels are kept. [env: BUILDER_STORE; default: ~/.cache/builder]",
)


class OneOf(click.Choice[str]):
    """One of the values of an enumeration, such as a `LoadTestRule`."""

    def __init__(self, values: type[Enum], *, name: str) -> None:
        super().__init__([value.value for value in values])
        self.values = values
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what `value` names."""
        return self.values(super().convert(getattr(value, "value", value), param, ctx))


load_test_option = click.option(
    "--load-test",
    type=OneOf(LoadTestRule, name="rule"),
    help="A wheel that cannot be imported: refuse it, note it and keep it, or do not try. "
    "Default: 'build.load-test' of build.toml, else require.",
)


toolchain_option = click.option(
    "--toolchain",
    type=OneOf(ToolchainChoice, name="toolchain"),
    envvar="BUILDER_TOOLCHAIN",
    help="C++ compilers: this machine's, or the pinned ones, which give the same wheel on any Linux. "
    "Default: 'build.toolchain' of build.toml, else system. [env: BUILDER_TOOLCHAIN]",
)


class Archs(click.ParamType[Any]):
    """The GPUs that a build is for: `all`, `native`, or their architectures as `TargetGpus`."""

    name = "archs"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the GPUs that `value` names."""
        if not isinstance(value, str) or value in (ALL, architectures.NATIVE):
            return value
        try:
            return architectures.parse(value)
        except BuilderError as error:
            self.fail(f"{error.message}: {error.help}", param, ctx)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Return the words that are not architectures."""
        return [CompletionItem(word) for word in (ALL, architectures.NATIVE) if word.startswith(incomplete)]


allow_quick_option = click.option("--allow-quick", is_flag=True, help="Also accept wheels of quick builds (--archs).")


def archs_option(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option that names the GPUs of a quick build."""
    return click.option("--archs", type=Archs(), metavar="native|all|LIST", help=what)


class PartType(click.ParamType[Part]):
    """A part such as `1/4`, as a `Part`."""

    name = "part"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Part:
        """Return the part that `value` names."""
        try:
            return value if isinstance(value, Part) else Part.parse(str(value))
        except BuilderError as error:
            self.fail(str(error), param, ctx)


_NUMBER = "[0-9]{1,12}"
"""No disk has more terabytes, and no store is older in seconds."""
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Size(click.ParamType[int]):
    """A number of bytes, such as `8G`."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return bytes."""
        text = str(value).upper().removesuffix("B").removesuffix("I")
        number, unit = (text[:-1], text[-1]) if text[-1:].isalpha() else (text, "")
        if unit not in _SIZES or re.fullmatch(_NUMBER, number, re.ASCII) is None or int(number) == 0:
            self.fail(f"{value!r} is not a size such as 8G or 512M", param, ctx)
        return int(number) * _SIZES[unit]


_cache_options = (
    click.option(
        "--cache",
        "cache_url",
        metavar="URL",
        envvar="BUILDER_CACHE",
        help="Also take compiled files from here: a folder, redis://HOST:PORT/0 or s3://BUCKET/PREFIX. "
        "[env: BUILDER_CACHE]",
    ),
    click.option(
        "--cache-access",
        type=click.Choice([access.value for access in Access]),
        envvar="BUILDER_CACHE_ACCESS",
        default=Access.READ.value,
        help="What to do with --cache: read it, write to it and read no cache, or both. "
        "[env: BUILDER_CACHE_ACCESS; default: read]",
    ),
    click.option(
        "--cache-size",
        type=Size(),
        envvar="BUILDER_CACHE_SIZE",
        default="10G",
        help="Most bytes of compiled files in the store. [env: BUILDER_CACHE_SIZE; default: 10G]",
    ),
    click.option("--no-cache", is_flag=True, help="Compile every file, and keep none."),
)


def cache_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the cache of compiled files; the command gets them as one `cache`, None with --no-cache."""

    @functools.wraps(command)
    def call(
        *args: Any, cache_url: str | None, cache_access: str, cache_size: int, no_cache: bool, **kwargs: Any
    ) -> Any:
        found = CacheOptions(url=cache_url or None, access=Access(cache_access), limit=cache_size)
        return command(*args, cache=None if no_cache else found, **kwargs)

    for option in reversed(_cache_options):
        call = option(call)
    return call


_AGES = {"S": 1, "M": 60, "H": 3600, "D": 86400, "W": 604800}


class Age(click.ParamType[float]):
    """A span of time, such as `30d`, `12h` or `5h30m`, in seconds."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds."""
        text = str(value).upper()
        parts = re.findall(rf"({_NUMBER})([SMHDW])", text, re.ASCII)
        seconds = sum(int(number) * _AGES[unit] for number, unit in parts)
        if "".join(map("".join, parts)) != text or seconds == 0:
            self.fail(f"{value!r} is not a span of time such as 30d, 12h or 5h30m", param, ctx)
        return float(seconds)
