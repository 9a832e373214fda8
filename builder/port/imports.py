"""The lines of a project that import its extensions: modules with the names of before, and changes for a person."""

import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from builder.port import source_facts
from builder.port.source_facts import Place
from builder.render import quoting

_FEW = 3
"""The most lines that a person changes one by one: for more, one file gives the extensions their names of before."""
_NAMES = "_extensions"
_MODULE = '''"""The extension module, under the name that the package imports it by."""

import sys

from {dots}{generated} import module

sys.modules[__name__] = module
'''
_OPS = '''"""Load the operators, as an import of the extension did."""

from {dots}{generated} import ops

__all__ = ["ops"]
'''
_TOP = '''"""The extensions, under the names that they had beside the package: import this before them.

The names are those of the process: two versions of this package cannot be loaded in it.
"""

import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

_NAMES = {{
{names}
}}


class _Finder(MetaPathFinder, Loader):
    """Find an extension by its name, and load it at its first import."""

    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self) if fullname in _NAMES else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        generated, name = _NAMES[module.__name__]
        sys.modules[module.__name__] = getattr(import_module(f".{{generated}}", __package__), name)


sys.meta_path.insert(0, _Finder())
'''


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """The Python package of a project."""

    directory: str
    """The folder of the package."""
    name: str
    folders: Sequence[str]
    """The folders of the package and of the packages in it."""
    folder_of: Callable[[str], str]
    """The folder of a package, by its dotted name."""


def modules(package: Package, reached: Mapping[str, tuple[str, str]], place: Place) -> Mapping[str, str]:
    """Return Python files that give extensions their names of before, and tell a person what else has to change.

    `reached` has for each extension the new import name, and the generated module that defines it.
    """
    files: dict[str, str] = {}
    generated = {f"{package.directory}/{module}.py" for _, module in reached.values()}
    beside: dict[str, tuple[str, str]] = {}
    found = {extension: list(_lines(extension, package, place)) for extension in reached}
    for extension, (what, module) in reached.items():
        path = _path_of(extension, package, place) if found[extension] else None
        text = (_MODULE if what == "module" else _OPS).format(dots=_dots(path or "", package), generated=module)
        if path is not None and path not in generated and source_facts.read(place.root, path) in {"", text}:
            files[path] = text
        else:
            beside[extension] = (what, module)
    top = {name: reached for name, reached in beside.items() if name.isidentifier()}
    count = sum(len(found[name]) for name in top)
    path, text = f"{package.directory}/{_NAMES}.py", _names(top)
    if count > _FEW and source_facts.read(place.root, path) in {"", text}:
        files[path] = text
        beside = {name: reached for name, reached in beside.items() if name not in top}
        place.todo.add(
            f"write: from . import {_NAMES}, which gives the extensions their names in {count} other lines",
            at=f"{package.directory}/__init__.py:{_first_import(place, package)}",
        )
    _say_lines(beside, package, place)
    _say_loads(reached, package, place)
    return files


def _path_of(extension: str, package: Package, place: Place) -> str | None:
    """Return the file that would be an extension's module in the package; None where it can be none."""
    parts = extension.split(".")
    if parts[0] != package.name or not parts[1:]:
        return None
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        return None
    folder = package.folder_of(".".join(parts[:-1]))
    inside = folder == package.directory or folder.startswith(f"{package.directory}/")
    path = f"{folder}/{parts[-1]}"
    hidden = source_facts.is_file(place.root, f"{path}/__init__.py")
    return f"{path}.py" if inside and not hidden and source_facts.is_folder(place.root, folder) else None


def _dots(file: str, package: Package) -> str:
    """Return the dots of an import from the package in one of its files."""
    return "." * (file.removeprefix(f"{package.directory}/").count("/") + 1)


def _names(top: Mapping[str, tuple[str, str]]) -> str:
    quoted = quoting.python
    lines = (f"    {quoted(name)}: ({quoted(module)}, {quoted(what)})," for name, (what, module) in top.items())
    return _TOP.format(names="\n".join(lines))


def _first_import(place: Place, package: Package) -> int:
    """Return the line of the first import in the package, before which another one can be written."""
    lines = source_facts.read(place.root, f"{package.directory}/__init__.py").splitlines()
    starts = (number for number, line in enumerate(lines, start=1) if line.startswith(("import ", "from ")))
    return next((number for number in starts if not lines[number - 1].startswith("from __future__")), 1)


def _lines(extension: str, package: Package, place: Place) -> Iterator[tuple[str, int]]:
    yield from source_facts.imports_of(place.root, extension, package.folders, top=package.directory)
    yield from source_facts.mentions_of(place.root, extension, package.folders)


def _say_lines(reached: Mapping[str, tuple[str, str]], package: Package, place: Place) -> None:
    """Report lines that import an extension, or contain its name as text."""
    root, todo = place.root, place.todo
    for extension, (what, module) in reached.items():
        for file, line in source_facts.imports_of(root, extension, package.folders, top=package.directory):
            dots = _dots(file, package)
            todo.add(f"in place of '{extension}', write: from {dots}{module} import {what}", at=f"{file}:{line}")
        for file, line in source_facts.mentions_of(root, extension, package.folders):
            todo.add(
                f"no module of the wheel is named '{extension}': see what becomes of this",
                at=f"{file}:{line}",
            )


def _say_loads(reached: Mapping[str, tuple[str, str]], package: Package, place: Place) -> None:
    """Report lines that load a library of ops, call an op by the module's name, or compile one."""
    ops = {extension: module for extension, (what, module) in reached.items() if what == "ops"}
    for file, line in source_facts.library_loads_of(place.root, package.folders):
        text = f"from {_dots(file, package)} import {', '.join(ops.values())}, each of which loads its library"
        place.todo.add(f"in place of this, write: {text}", at=f"{file}:{line}")
    for extension, module in ops.items():
        namespace = f"torch.ops.{extension.rpartition('.')[2]}"
        for file, line in source_facts.calls_of(place.root, namespace, package.folders):
            text = f"in place of '{namespace}', write ops, of: from {_dots(file, package)}{module} import ops"
            place.todo.add(text, at=f"{file}:{line}")
    for file, line in source_facts.loads_of(place.root, package.folders):
        text = "this compiles when it is imported: take the module of the wheel in every case"
        place.todo.add(text, at=f"{file}:{line}")
