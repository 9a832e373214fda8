"""A stand-in for setuptools: `setup` notes what it is given, and runs no command."""

import fnmatch
import os
import types
from collections.abc import Sequence
from typing import Any

from .notes import Notes
from .pretended import Anything, Fill
from .torch_module import Noted

PRETENDED = ("setuptools", "distutils", "wheel", "pkg_resources", "setuptools_scm", "versioneer")


def modules(notes: Notes) -> dict[str, Fill]:
    """Return what fills the modules that have more to say than anything pretended."""

    def fill(module: types.ModuleType) -> None:
        module.__dict__.update(
            setup=lambda **options: _setup(notes, options),
            find_packages=find_packages,
            find_namespace_packages=lambda where=".", exclude=(), include=("*",): find_packages(
                where, exclude, include, namespaces=True
            ),
            Extension=extension_class(notes),
            __version__="80.0.0",
        )

    names = ("setuptools", "setuptools.extension", "distutils.core", "distutils.extension", "setuptools.discovery")
    return dict.fromkeys(names, fill)


def extension_class(notes: Notes) -> type:
    """Return setuptools' `Extension`, a class since projects derive theirs from it."""

    class Extension(Noted):
        def __init__(self, name: str, sources: Any = (), *args: object, **options: Any) -> None:
            order = ("include_dirs", "define_macros", "undef_macros", "library_dirs", "libraries")
            given = {**dict(zip(order, args, strict=False)), **options}
            super().__init__(type(self).__name__, name, sources, notes.place(), given)
            notes.extensions.append({"made": self})

    return Extension


_TEXTS = ("name", "version", "license", "url", "python_requires", "long_description", "license_expression")
_NO_KEY = ("data_files", "entry_points", "extras_require", "project_urls", "scripts")
_LISTS = ("packages", "install_requires", "classifiers", "py_modules", "setup_requires")


def _setup(notes: Notes, options: dict[str, Any]) -> None:
    if notes.setup is not None:
        return
    found: dict[str, Any] = {"at": notes.place()}
    found |= {name: str(options[name]) for name in _TEXTS if options.get(name)}
    found |= {name: [str(each) for each in _listed(options.get(name))] for name in _LISTS}
    folders, data = options.get("package_dir") or {}, options.get("package_data") or {}
    found["package_dir"] = {str(name): str(folder) for name, folder in folders.items()}
    found["package_data"] = {str(name): [str(each) for each in _listed(globs)] for name, globs in data.items()}
    found["no_key"] = [name for name in _NO_KEY if options.get(name)]
    found["commands"] = sorted(str(name) for name in options.get("cmdclass") or {})
    found["passed"] = [id(each) for each in options.get("ext_modules") or () if isinstance(each, Noted)]
    notes.setup = found


def _listed(value: object) -> Sequence[object]:
    if isinstance(value, str):
        return [line.strip() for line in value.splitlines() if line.strip()]
    return list(value) if isinstance(value, list | tuple | set | frozenset) else []


def find_packages(
    where: str = ".",
    exclude: Sequence[str] = (),
    include: Sequence[str] = ("*",),
    *,
    namespaces: bool = False,
) -> list[str]:
    """Return the packages below a folder, sorted, as setuptools finds them."""
    found = []
    for folder, names, files in os.walk(where, followlinks=True):
        names[:] = sorted(name for name in names if name.isidentifier())
        relative = os.path.relpath(folder, where)
        if relative == ".":
            continue
        if "__init__.py" not in files and not namespaces:
            names[:] = []
            continue
        name = relative.replace(os.sep, ".")
        if _matches(name, include) and not _matches(name, exclude):
            found.append(name)
    return sorted(found)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not isinstance(patterns, Anything) and any(fnmatch.fnmatchcase(name, str(pattern)) for pattern in patterns)
