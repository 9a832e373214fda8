"""Rewrite a config of any schema to the current edition; unchanged parts keep their text."""

import difflib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tomlkit.exceptions import TOMLKitError

from builder import toml
from builder.config import PREVIEW, Backend, Config, detect_schema, read, toml_edit, v2
from builder.config.decode import decode
from builder.config.dependencies import CudaPythonDependency, PythonDependency
from builder.config.text import Source
from builder.config.v5 import EDITION
from builder.config.wheel_values import license_problem
from builder.errors import BuilderError
from builder.files import flush_names, write_atomic

_BOM = "\ufeff"
_LICENSED = 4
"""The first schema that must name a license."""


def rewrite(source: Source, *, license: str | None = None, preview: bool = False) -> str:
    """Return the text of a config in the current edition; `license` is used if the config names none.

    With `preview`, use the edition after that. A config that already uses it stays unchanged in any case.

    Raises:
        BuilderError: `license` is not an SPDX expression, or the text cannot be rewritten in place.
        ConfigError: with every problem of the text, including a missing license that was not given.
    """
    wrong = None if license is None else license_problem(license)
    if wrong is not None:
        message, remedy = wrong
        raise BuilderError(message, help=remedy)
    table, text = source.table(), source.text
    schema, wanted = detect_schema(table, source), PREVIEW if preview else EDITION
    general = table.get("general")
    if license is not None and schema >= _LICENSED and isinstance(general, dict) and "license" not in general:
        # Older schemas get it on the way.
        after = next((key for key in ("version", "name") if key in general), None)
        text = text if after is None else toml_edit.add(text, ("general", "license"), license, after=after)
    given = Source(name=source.name, text=text)
    expected = read(given, license=license).config
    if schema >= wanted:
        return text
    text = text if text.endswith("\n") else f"{text}\n"
    unusual = BuilderError(
        f"'{source.name}' is laid out in a way that cannot be rewritten without changing what it means",
        help=f"write it in edition {EDITION} by hand: 'builder check' helps",
    )
    try:
        for number in range(schema, wanted):
            text = _STEPS[number](text, toml.loads(text), license)
    except (TOMLKitError, LookupError, StopIteration) as error:
        raise unusual from error
    text = text if given.text.endswith("\n") else text.removesuffix("\n")
    if read(Source(name=source.name, text=text)).config != expected:
        raise unusual
    return text


Step = Callable[[str, dict[str, Any], str | None], str]


def _from_1(text: str, table: dict[str, Any], _: str | None) -> str:
    """Give each component a backend in place of its language."""
    for name, component in table.get("kernel", {}).items():
        text = _component(text, name, component)
    if "universal" in table.get("torch", {}):
        text = toml_edit.remove(text, ("torch", "universal"))
        if "torch" not in toml.loads(text):  # its only key was dotted
            text = toml_edit.add_table(text, "torch")
        if table["torch"]["universal"]:
            text = toml_edit.add(text, ("general", "universal"), value=True, after="name")
    return text


def _component(text: str, name: str, component: dict[str, Any]) -> str:
    path = ("kernel", name)
    language = component.get("language", "cuda")
    if language == "cuda-hipify":
        text = toml_edit.duplicate(text, path, f"{name}_rocm")
        text = _backend(text, ("kernel", f"{name}_rocm"), component, "rocm", drop="cuda-capabilities")
        return _backend(text, path, component, "cuda", drop="rocm-archs")
    if language == "metal":
        text = _without(text, path, component, "cuda-capabilities")
    return _backend(text, path, component, language, drop="rocm-archs")


def _backend(text: str, path: tuple[str, ...], component: dict[str, Any], backend: str, *, drop: str) -> str:
    text = _without(text, path, component, drop)
    if "language" in component:
        return toml_edit.change(text, (*path, "language"), backend, key="backend")
    return toml_edit.add(text, (*path, "backend"), backend, after="depends")


def _without(text: str, path: tuple[str, ...], component: dict[str, Any], key: str) -> str:
    return toml_edit.remove(text, (*path, key)) if key in component else text


def _from_2(text: str, table: dict[str, Any], _: str | None) -> str:
    """List the backends; move settings for CUDA to their own table."""
    general = table["general"]
    config = decode(v2.Config, table, Source(name="", text=text), current=Config, old=True)
    if "universal" in general:
        text = toml_edit.remove(text, ("general", "universal"))
    text = toml_edit.add(text, ("general", "backends"), [backend.value for backend in config.backends], after="name")
    text = _to_cuda(text, general)
    if config.upgrade().noarch is None:
        return text
    for key in table["torch"]:
        if key != "pyext":
            text = toml_edit.remove(text, ("torch", key))
    return toml_edit.rename(text, "torch", "torch-noarch")


def _to_cuda(text: str, general: dict[str, Any]) -> str:
    """Move settings for CUDA: in place, with a dotted key, unless the table is an inline one."""
    names = general.get("python-depends", [])
    cuda = [name for name in names if name in CudaPythonDependency.names()]
    moved = {bound: general[f"cuda-{bound}"] for bound in ("minver", "maxver") if f"cuda-{bound}" in general}
    kept = [name for name in names if name in PythonDependency.names()]
    if toml_edit.is_inline(text, ("general",)):
        for bound in moved:
            text = toml_edit.remove(text, ("general", f"cuda-{bound}"))
        text = toml_edit.change(text, ("general", "python-depends"), kept) if cuda else text
        own = {**moved, "python-depends": cuda} if cuda else moved
        return toml_edit.add(text, ("general", "cuda"), own, after="name") if own else text
    for bound, version in moved.items():
        text = toml_edit.change(text, ("general", f"cuda-{bound}"), version, key=f"cuda.{bound}")
    if not cuda:
        return text
    if not kept:
        return toml_edit.change(text, ("general", "python-depends"), cuda, key="cuda.python-depends")
    text = toml_edit.add(text, ("general", "cuda.python-depends"), cuda, after="python-depends")
    return toml_edit.change(text, ("general", "python-depends"), kept)


def _from_3(text: str, table: dict[str, Any], license_: str | None) -> str:
    """Add the keys that schema 4 requires."""
    general = table["general"]
    after = "version" if "version" in general else "name"
    if "license" not in general and license_ is not None:
        text = toml_edit.add(text, ("general", "license"), license_, after=after)
    if "version" not in general:
        text = toml_edit.add(text, ("general", "version"), 1, after="name")
    if not {"torch", "torch-noarch", "tvm-ffi"} & set(table):
        text = toml_edit.add_table(text, "torch-noarch")
    return text


def _from_4(text: str, table: dict[str, Any], _: str | None) -> str:
    """Add the edition; turn the single stable ABI into one for each backend."""
    text = toml_edit.add(text, ("general", "edition"), EDITION, after="version")
    stable = table.get("torch", {}).get("stable-abi")
    if stable is None:
        return text
    backends = [Backend(name).value for name in table["general"]["backends"]]
    return toml_edit.change(text, ("torch", "stable-abi"), dict.fromkeys(backends, stable))


def _from_5(text: str, table: dict[str, Any], _: str | None) -> str:
    """Write the edition after the current one, with the repository as a list."""
    text = toml_edit.change(text, ("general", "edition"), PREVIEW)
    upstream = table["general"].get("upstream")
    return text if upstream is None else toml_edit.change(text, ("general", "upstream"), [upstream])


_STEPS: dict[int, Step] = {1: _from_1, 2: _from_2, 3: _from_3, 4: _from_4, 5: _from_5}


def write(path: Path, text: str) -> None:
    """Replace a file by `text` in one step, through links, and keep its mode and line ends.

    Raises:
        BuilderError: the directory cannot be written to.
    """
    target = Path(os.path.realpath(path))
    try:
        old = target.read_bytes()
        write_atomic(target, encoded(old, text), like=target.stat())
        flush_names(target.parent)
    except OSError as error:
        raise BuilderError(f"cannot write '{path}': {error.strerror}", help="it is as it was") from error


def encoded(old: bytes, text: str) -> bytes:
    """Return `text` with the byte order mark and, line by line, the line ends of the old file."""
    before = old.decode("utf-8")
    mark = _BOM if before.startswith(_BOM) else ""
    lines, new = before.removeprefix(_BOM).split("\n"), text.split("\n")
    if "\r\n" in before:
        plain = [line.removesuffix("\r") for line in lines]
        usual = "\r" if before.count("\r\n") * 2 > before.count("\n") else ""
        matcher = difflib.SequenceMatcher(None, plain, new, autojunk=False)
        new = [f"{line}{usual}" for line in new[:-1]] + new[-1:]
        for tag, first, last, start, end in matcher.get_opcodes():
            if tag == "equal":
                new[start:end] = lines[first:last]
    return (mark + "\n".join(new)).encode()
