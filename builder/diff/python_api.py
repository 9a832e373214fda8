"""Compare the public names and signatures of two builds, with griffe, which reads the sources and runs none of them."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

from builder import codec
from builder.audit import limited
from builder.diff.changes import FactChange
from builder.diff.facts import module_of, opened
from builder.errors import BuilderError
from builder.untrusted import LARGEST_TEXT
from builder.wheel.archive import Wheel, WheelError

PART = "Python API"
NOT_HERE = "the Python API: griffe is not installed: python -m pip install 'kernel-wheel-builder[diff]'"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    changes: tuple[FactChange, ...]


def compare(before: Path, after: Path) -> tuple[tuple[FactChange, ...], str]:
    """Return the changes of the public API, or why it could not be compared."""
    if find_spec("griffe") is None:
        return (), NOT_HERE
    try:
        found = limited.answered(after, partial(_compared, before, after))
    except (limited.CostlyError, BuilderError) as error:
        return (), f"the Python API: {error}"
    return codec.decode(_Found, found).changes, ""


def _compared(before: Path, after: Path) -> _Found:
    import griffe  # noqa: PLC0415  an optional dependency

    with tempfile.TemporaryDirectory(prefix="builder-diff-") as folder:
        try:
            old, new = (_loaded(opened(path), Path(folder) / name) for path, name in ((before, "a"), (after, "b")))
        except (griffe.GriffeError, SyntaxError, ValueError, RecursionError, ImportError) as error:
            raise WheelError(f"griffe cannot read the sources: {error}") from error
        return _Found(changes=(*_broken(old, new), *_added(old, new)))


def _loaded(wheel: Wheel, folder: Path) -> Any:
    """Return the package of a wheel, of which only the sources are unpacked."""
    import griffe  # noqa: PLC0415  an optional dependency

    module = module_of(wheel)
    for name, member in wheel.members.items():
        if name.startswith(f"{module}/") and name.endswith((".py", ".pyi")) and member.size <= LARGEST_TEXT:
            target = folder / PurePosixPath(name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(member.read())
    return griffe.load(module, search_paths=[folder], allow_inspection=False, try_relative_path=False)


def _broken(old: Any, new: Any) -> Iterator[FactChange]:
    import griffe  # noqa: PLC0415  an optional dependency

    for each in griffe.find_breaking_changes(old, new):
        values = (each.old_value, each.new_value)
        before, after = ("" if value is None else str(getattr(value, "path", value)) for value in values)
        why = each.kind.value.lower()
        yield FactChange(part=PART, subject=_subject(each), before=before, after=after, breaks=why)


def _subject(breakage: Any) -> str:
    """Return the path of what changed, with the parameter where it is one of a function."""
    parameter = next((getattr(value, "name", None) for value in (breakage.old_value, breakage.new_value)
                      if type(value).__name__ == "Parameter"), None)  # fmt: skip
    return f"{breakage.obj.path}({parameter})" if parameter else str(breakage.obj.path)


def _added(old: Any, new: Any) -> Iterator[FactChange]:
    known = {*_public(old)}
    for path in sorted({*_public(new)} - known):
        yield FactChange(part=PART, subject=path, after="there")


def _public(package: Any) -> Iterator[str]:
    """Yield the paths of the public names of a package, and of what is in them."""
    for member in package.members.values():
        if member.is_public and not member.is_alias:
            yield member.path
            yield from _public(member) if member.is_module or member.is_class else ()
