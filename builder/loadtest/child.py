"""The process that imports a kernel: it reports what happened and judges nothing.

It runs in a cell's environment, with any Python that torch supports, and cannot import `builder`. Its only argument is
JSON; it reads a question from standard input, and writes its report to the file that the argument names. An early
process imports the framework before it reads, since there is no wheel yet.
"""

import ctypes
import importlib
import importlib.machinery
import json
import os
import pathlib
import site
import sys
import traceback
import types
from typing import Any, NoReturn

Asked = dict[str, Any]
Found = dict[str, Any]


def main() -> None:
    """Load the library, import the package, and check the ops."""
    asked = json.loads(sys.argv[1])
    for folder in asked["folders"]:
        site.addsitedir(folder)  # not PYTHONPATH, since packages have .pth files
    found: Found = {"library": None, "failure": None, "ops": {}, "described": {}}
    asked.update(_question(asked))
    sys.path.insert(0, asked["parent"])
    try:
        if asked["stand-in"]:
            _stand_in(asked)
        else:
            _load_libraries(asked, found)
        if asked["depends"]:  # the kernels that this kernel depends on
            loader = importlib.machinery.SourceFileLoader("_builder_kernel_client", asked["client"])
            client = types.ModuleType(loader.name)
            loader.exec_module(client)
            client.provide(asked["depends"])
        importlib.import_module(asked["module"])
        main, *extensions = asked["libraries"]
        early = asked["framework"] in ("tvm-ffi", "ctypes") or asked["of-one-python"]
        for library in [] if asked["stand-in"] else [*([main] if early else []), *extensions]:
            # A package may import it in a later call.
            generated = importlib.import_module(asked["module"] + "." + library["module"])
            if asked["framework"] == "ctypes":
                generated.load()
    except BaseException as error:  # noqa: BLE001  whatever a kernel raises is what there is to tell
        found["failure"] = _failure(asked, error)
    if not asked["stand-in"]:
        found["ops"] = _ops(asked)
        found["described"] = _described(asked, found["ops"])
    pathlib.Path(asked["result"]).write_text(json.dumps({**found, "done": True}), encoding="utf-8")
    _end()


def _end() -> NoReturn:
    """End at once: Python takes 0.4 s to clean up torch, and the end of the process is not part of the test."""
    os._exit(0)


def _question(asked: Asked) -> Asked:
    """Wait for the question; import the framework first if told so, and end if that import looks for the package."""
    watch = _Watch(asked["module"])
    if asked["early"]:
        sys.meta_path.insert(0, watch)
        _import_framework(asked)
        sys.meta_path.remove(watch)
    question = sys.stdin.read()
    if watch.seen or not question:
        _end()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return dict(json.loads(question))


class _Watch:
    """Notes whether an import searches for the package's name, which it would find if the package were on the path."""

    def __init__(self, module: str) -> None:
        self._module = module
        self.seen = False

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> None:
        self.seen = self.seen or name == self._module


def _import_framework(asked: Asked) -> None:
    """Import the framework; a plain library has none."""
    if asked["framework"] != "ctypes":
        importlib.import_module("tvm_ffi" if asked["framework"] == "tvm-ffi" else "torch")


def _load_libraries(asked: Asked, found: Found) -> None:
    """Load each library separately: a package may hide the loader's message, or load the library only when called."""
    for library in asked["libraries"]:
        if library["file"] is None or found["library"] is not None:
            continue
        try:
            _import_framework(asked)
            ctypes.CDLL(library["file"])  # as torch does, but without torch's words around the loader's message
        except (ImportError, OSError) as error:
            found["library"] = str(error)


def _stand_in(asked: Asked) -> None:
    """Replace the generated modules, whose libraries do not exist yet."""
    for library in asked["libraries"]:
        name = asked["module"] + "." + library["module"]
        module = types.ModuleType(name)
        vars(module).update(dict.fromkeys(("ops", "module", "load", "PATH", "BACKEND"), _Anything()))
        vars(module).update(add_op_namespace_prefix=lambda op_name, ops=library["ops"]: f"{ops}::{op_name}")
        sys.modules[name] = module


class _Anything:
    """Has every attribute, can be called and subscripted, and notes when its value affects a decision."""

    used = False

    def __getattr__(self, name: str) -> "_Anything":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_arguments: Any, **_options: Any) -> "_Anything":
        _Anything.used = True
        return self

    def __getitem__(self, _key: Any) -> "_Anything":
        _Anything.used = True
        return self

    def __bool__(self) -> bool:
        _Anything.used = True
        return True


def _ops(asked: Asked) -> dict[str, list[str]]:
    """Return the registered ops, each with the dispatch keys that have a kernel."""
    if asked["framework"] == "ctypes":
        return _exports(asked)
    torch = sys.modules.get("torch")
    if asked["framework"] == "tvm-ffi":
        loaded = getattr(sys.modules.get(asked["module"] + "._ops"), "ops", None)
        return {} if loaded is None else {asked["libraries"][0]["ops"]: [type(loaded).__name__]}
    if torch is None or not hasattr(torch, "_C"):
        return {}
    compiled = tuple(library["ops"] + "::" for library in asked["libraries"])
    own = compiled if asked["framework"] == "torch" else "_" + asked["module"] + "_"
    names = sorted(name for name in torch._C._dispatch_get_all_op_names() if name.startswith(own))  # noqa: SLF001
    functions = _functions(asked)
    has = torch._C._dispatch_has_kernel_for_dispatch_key  # noqa: SLF001  the only place that knows
    keys = (asked["key"], "CompositeExplicitAutograd", "CompositeImplicitAutograd")
    return {**{name: [key for key in keys if has(name, key)] for name in names}, **functions}


KEYS = ("CPU", "CUDA", "XPU", "MPS", "PrivateUse1", "Meta", "AutogradCPU", "AutogradCUDA", "AutogradXPU", "AutogradMPS",
        "AutocastCPU", "AutocastCUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd")  # fmt: skip
"""The dispatch keys for which kernels register ops."""
ALL_TENSORS = ("Meta", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
"""The keys whose kernels also run for fake tensors."""


def _described(asked: Asked, ops: dict[str, list[str]]) -> Found:
    """Return each op by the name that all builds share, and what torch says of its schema beside the one `before`."""
    names = [name for name in ops if "::" in name] if "describe" in asked else []
    found: Found = {}
    for name in names:
        torch = sys.modules["torch"]
        base, _, overload = name.partition(".")
        schema = torch._C._get_schema(base, overload)  # noqa: SLF001  the only place that knows
        namespace, _, own = name.partition("::")
        shared = asked["describe"].get(namespace, namespace)
        text = str(schema).replace(namespace + "::", shared + "::")
        keys = [key for key in KEYS if torch._C._dispatch_has_kernel_for_dispatch_key(name, key)]  # noqa: SLF001
        found[shared + "::" + own] = {
            "schema": text,
            "keys": keys,
            "fake": bool({*keys}.intersection(ALL_TENSORS)) or _has_fake(name),
            "mutable": bool(schema.is_mutable),
            "fits": _fits(text, asked["before"].get(shared + "::" + own)),
        }
    return found


def _has_fake(name: str) -> bool:
    try:
        from torch._library.simple_registry import singleton  # noqa: PLC0415  an old torch has none

        return singleton.find(name).fake_impl.kernel is not None
    except (ImportError, AttributeError):
        return False


def _fits(text: str, before: "str | None") -> bool:
    """Whether torch's parser says that calls of the schema `before` are calls of this one."""
    if before is None or text == before:
        return True
    parse = sys.modules["torch"]._C.parse_schema  # noqa: SLF001
    try:
        return bool(parse(text).is_backward_compatible_with(parse(before)))
    except RuntimeError:
        return False


def _exports(asked: Asked) -> dict[str, list[str]]:
    """Return the functions of a plain library, and mark the ones that the loader finds."""
    (asked_library,) = asked["libraries"]
    module = sys.modules.get(asked["module"] + "." + asked_library["module"])
    try:
        library = None if module is None else module.load()
    except BaseException:  # noqa: BLE001  it is the failure that is told already
        library = None
    names = [] if library is None else asked_library["exports"]
    return {name: ["C"] if hasattr(library, name) else [] for name in names}


def _functions(asked: Asked) -> dict[str, list[str]]:
    """Return the functions and classes of modules for one Python, which take the place of ops."""
    found = {}
    for library in asked["libraries"] if asked["of-one-python"] else ():
        module = sys.modules.get(asked["module"] + "." + library["ops"])
        names = () if module is None else sorted(vars(module))
        found.update({library["ops"] + "." + name: ["Python"] for name in names if not name.startswith("__")})
    return found


def _failure(asked: Asked, failed: BaseException) -> Found:
    """Describe an exception and its causes, the last one first."""
    chain: list[Found] = []
    error: BaseException | None = failed
    while error is not None and len(chain) < 10:  # noqa: PLR2004  a chain may be a ring
        frames = list(traceback.walk_tb(error.__traceback__))
        chain.append(
            {
                "types": [_name(cls) for cls in type(error).__mro__],
                "text": str(error),
                "missing": _missing(asked, error),
                "origins": [str(frame.f_globals.get("__name__", "")) for frame, _ in frames],
            }
        )
        # A handler raises ImportError or RuntimeError to explain the handled error; other errors in it are accidents.
        wraps = type(error) in (ImportError, RuntimeError)
        error = error.__cause__ or (error.__context__ if wraps and not error.__suppress_context__ else None)
    return {"chain": chain, "text": _text(failed), "used-stand-in": _Anything.used}


def _text(error: BaseException) -> str:
    """Format an exception as Python does, without frames of the import system and of this file."""
    frames = traceback.extract_tb(error.__traceback__)
    shown = [frame for frame in frames if not frame.filename.startswith("<") and "/importlib/" not in frame.filename]
    return "".join([*traceback.format_list(shown), *traceback.format_exception_only(type(error), error)])


def _missing(asked: Asked, error: BaseException) -> str | None:
    """Return the missing top-level module that ended the import, unless it is the kernel's or Python's."""
    if type(error) is not ModuleNotFoundError or not error.name:
        return None
    top = error.name.partition(".")[0]
    own = top == asked["module"] or top in asked["standard"] or top in sys.builtin_module_names
    return None if own or importlib.machinery.PathFinder.find_spec(top) is not None else top


def _name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else cls.__module__ + "." + cls.__qualname__


main()
