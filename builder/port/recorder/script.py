"""Run one `setup.py` among stand-ins and write down what it asks for: the entry point in the sandbox."""

import contextlib
import json
import os
import runpy
import sys
import warnings
from collections.abc import Callable
from typing import Any

from . import stand_ins
from .notes import Finder, Notes

_LISTED = ("include_dirs", "undef_macros", "libraries", "library_dirs", "extra_objects")
_LONGEST = 600


def main(spec_path: str) -> None:
    """Run the `setup.py` of the folder that the specification names, and end the process."""
    with open(spec_path, encoding="utf-8") as file:
        spec = json.load(file)
    tree, result, dump, leave = spec["tree"], spec["result"], json.dumps, os._exit
    notes = Notes(tree)
    known = {**stand_ins.torch_modules(spec["facts"], notes), **stand_ins.setuptools_modules(notes)}
    Finder(known, [*stand_ins.PRETENDED, *spec["pretended"]]).install()
    for name in [name for name in sys.modules if name.partition(".")[0] in stand_ins.PRETENDED]:
        del sys.modules[name]
    _believe(tuple(os.path.join(tree, folder) + os.sep for folder in spec["believed"]))
    ended = _run(tree, notes)
    found = {
        **ended,
        "setup": notes.setup,
        "events": notes.events,
        "variables": notes.variables,
        "extensions": _extensions(notes),
    }
    with open(result, "w", encoding="utf-8") as file:
        file.write(dump(found))
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    leave(0)


def _run(tree: str, notes: Notes) -> dict[str, Any]:
    """Run `setup.py` as `python setup.py` does, and say how it ended."""
    os.chdir(tree)
    sys.path.insert(0, tree)
    sys.argv = ["setup.py", "build_ext"]
    warnings.simplefilter("ignore")
    sys.addaudithook(notes.audit)
    notes.watch_variables()
    try:
        runpy.run_path(os.path.join(tree, "setup.py"), run_name="__main__")
    except SystemExit as error:
        return _ended("exit", notes, error, str(error.code))
    except KeyboardInterrupt:
        return {"ended": "exit", "message": "it interrupted itself"}
    except BaseException as error:  # noqa: BLE001  whatever a setup.py raises is what there is to tell
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        return {**_ended(type(error).__name__, notes, error, _message(error)), "missing": missing}
    return {"ended": "end"}


def _message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{error.msg} (line {error.lineno})"
    return str(error)


def _ended(how: str, notes: Notes, error: BaseException, message: str) -> dict[str, Any]:
    lines = message.replace(sys.executable, "python").splitlines()
    return {"ended": how, "message": (lines[0] if lines else "")[:_LONGEST], "at": notes.place_of(error)}


def _extensions(notes: Notes) -> list[dict[str, Any]]:
    """Return the extensions that were passed to `setup`, in their order, or all where it was not called."""
    made = [entry["made"] for entry in notes.extensions]
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
    """Return the name and the value of a macro; torch would refuse what has neither."""
    name, *value = given if isinstance(given, tuple | list) and given else (given,)
    return [str(name), None if not value or value[0] is None else str(value[0])]


def _list(value: Any) -> list[Any]:
    return [value] if isinstance(value, str | os.PathLike) else list(value or ())


def _texts(value: Any) -> list[str]:
    return [str(each) for each in _list(value)]


def _believe(folders: tuple[str, ...]) -> None:
    """Answer that everything is there in folders of submodules that were not fetched: they would be fetched first."""
    if not folders:
        return
    for name in ("exists", "isfile", "isdir"):
        setattr(os.path, name, _believing(getattr(os.path, name), folders))


def _believing(real: Callable[[Any], bool], folders: tuple[str, ...]) -> Callable[[Any], bool]:
    def answer(path: Any) -> bool:
        if real(path):
            return True
        try:
            found: str = os.path.abspath(os.fspath(path)) + os.sep
        except (TypeError, ValueError):
            return False
        return found.startswith(folders)

    return answer
