"""Run one `setup.py` among stand-ins, and write down the extensions: the entry point in the sandbox."""

import contextlib
import json
import os
import runpy
import sys
import warnings
from collections.abc import Callable
from typing import Any

from . import stand_ins
from .notes import Asked, Finder, Notes

_LISTED = ("include_dirs", "undef_macros", "libraries", "library_dirs", "extra_objects")
_LONGEST = 600
OUTSIDE = "it is outside of the folder of setup.py, which alone is copied"


def main(spec_path: str) -> None:
    """Run the `setup.py` in the folder of the specification, and end the process."""
    with open(spec_path, encoding="utf-8") as file:
        spec = json.load(file)
    tree, result, dump, leave = spec["tree"], spec["result"], json.dumps, os._exit
    notes = Notes(tree)
    known = {**stand_ins.torch_modules(spec["facts"], notes), **stand_ins.setuptools_modules(notes)}
    finder = Finder(
        known,
        [*stand_ins.PRETENDED, *spec["pretended"]],
        packages=spec["facts"]["torch_packages"],
        absent=spec["facts"]["torch_absent"],
        notes=notes,
    )
    sys.meta_path.insert(0, finder)
    for name in [name for name in sys.modules if name.partition(".")[0] in stand_ins.PRETENDED]:
        del sys.modules[name]
    _believe(tuple(os.path.join(tree, folder) + os.sep for folder in spec["believed"]))
    failure = _run(tree, notes)
    found = {
        **failure,
        "failure": None if notes.setup is not None else failure["failure"],
        "extensions": _extensions(notes),
        "setup": notes.setup,
        "events": notes.events,
        "variables": notes.variables,
        "answered": notes.answered,
    }
    with open(result, "w", encoding="utf-8") as file:
        file.write(dump(found))
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    leave(0)


def _run(tree: str, notes: Notes) -> dict[str, Any]:
    """Run `setup.py` as `python setup.py` does, and return how it ended."""
    os.chdir(tree)
    sys.path.insert(0, tree)
    sys.argv = ["setup.py", "build_ext"]
    warnings.simplefilter("ignore")
    sys.addaudithook(notes.audit)
    notes.watch_variables()
    asked = Asked(notes)
    sys.meta_path.append(asked)
    try:
        runpy.run_path(os.path.join(tree, "setup.py"), run_name="__main__")
    except SystemExit as error:
        said = "" if error.code is None else _first_line(str(error.code))
        return {"failure": f"it ended itself: sys.exit({said})", "at": notes.place_of(error)}
    except KeyboardInterrupt:
        return {"failure": "it ended itself: sys.exit(it interrupted itself)"}
    except BaseException as error:  # noqa: BLE001  whatever a setup.py raises is what there is to tell
        said = f"{error.msg} (line {error.lineno})" if isinstance(error, SyntaxError) else str(error)
        how = f"it raised {type(error).__name__}: {_first_line(said)}".removesuffix(": ")
        missing = _missing(error, asked)
        if isinstance(error, FileNotFoundError) and _is_outside(error.filename, tree):
            how += f" ({OUTSIDE})"
        return {"failure": how, "at": notes.place_of(error), "missing": missing}
    return {"failure": "it ended without calling setup()"}


def _missing(error: BaseException, asked: Asked) -> str | None:
    """Return the module that was not there; also where `setup.py` raised an error of its own for it."""
    if isinstance(error, ModuleNotFoundError):
        return error.name
    return asked.last if isinstance(error, ImportError) else None


def _is_outside(path: Any, tree: str) -> bool:
    """Whether a path is beside or above the project, from where nothing was copied."""
    if not isinstance(path, str):
        return False
    found, inside = os.path.realpath(path), os.path.realpath(tree)
    # The system's own files are no part of a project.
    near = found.startswith(os.path.dirname(os.path.dirname(inside)) + os.sep)
    return near and not found.startswith(inside + os.sep)


def _first_line(message: str) -> str:
    lines = (line.strip() for line in message.replace(sys.executable, "python").splitlines())
    return next(filter(None, lines), "")[:_LONGEST]


def _extensions(notes: Notes) -> list[dict[str, Any]]:
    """Return the extensions passed to `setup`, in order, or all extensions if it was not called."""
    made = notes.extensions
    if notes.setup is not None:
        by_id = {id(each): each for each in made}
        made = [by_id[number] for number in notes.setup.pop("passed") if number in by_id]
    return [_described(each) for each in made]


def _described(made: stand_ins.Noted) -> dict[str, Any]:
    flags = made.extra_compile_args
    if not isinstance(flags, dict):
        flags = {"cxx": flags, "nvcc": flags}
    return {
        **{name.replace("_", "-"): _texts(getattr(made, name)) for name in _LISTED},
        "kind": made.kind,
        "name": str(made.name),
        "at": made.place,
        "sources": _texts(made.sources),
        "cxx-flags": _texts(flags.get("cxx")),
        "nvcc-flags": _texts(flags.get("nvcc")),
        "define-macros": [_macro(each) for each in _list(made.define_macros)],
        "link-flags": _texts(made.extra_link_args),
        "py-limited-api": made.py_limited_api is True,
    }


def _macro(given: Any) -> list[str | None]:
    """Return the name and the value of a macro; torch would refuse one without either."""
    name, *value = given if isinstance(given, tuple | list) and given else (given,)
    return [str(name), None if not value or value[0] is None else str(value[0])]


def _list(value: Any) -> list[Any]:
    return [value] if isinstance(value, str | os.PathLike) else list(value or ())


def _texts(value: Any) -> list[str]:
    return [str(each) for each in _list(value)]


def _believe(folders: tuple[str, ...]) -> None:
    """Pretend that every file exists in folders of unfetched submodules, since a build would fetch them first."""

    def believing(real: Callable[[Any], bool]) -> Callable[[Any], bool]:
        def answer(path: Any) -> bool:
            if real(path):
                return True
            try:
                found: str = os.path.abspath(os.fspath(path)) + os.sep
            except (TypeError, ValueError):
                return False
            return found.startswith(folders)

        return answer

    for name in ("exists", "isfile", "isdir") if folders else ():
        setattr(os.path, name, believing(getattr(os.path, name)))
