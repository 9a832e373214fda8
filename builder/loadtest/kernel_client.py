"""Give a kernel its dependencies in a process without `builder`, through the hub's client or a stand-in for it.

A pytest process loads this module as a plugin; a file next to it lists the dependencies.
"""

import contextlib
import importlib
import importlib.util
import json
import pathlib
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

BESIDE = pathlib.Path(__file__).with_suffix(".json") if "__file__" in globals() else None
Tree = dict[str, Any]
Use = Callable[[dict[str, Any]], AbstractContextManager[Any]]


def provide(tree: Tree) -> None:
    """Load the dependencies of a kernel, and provide them for the rest of this process.

    `tree` maps each repository to `null` if it is not available, to an importable `module`, or to a `folder` with its
    own tree under `depends`.
    """
    if importlib.util.find_spec("kernels") is None:
        use: Use = _StandIn.installed().use
    else:
        use = importlib.import_module("kernels.deps").use_kernel_deps
    use(_modules(tree, use, {})).__enter__()


def _modules(tree: Tree, use: Use, loaded: dict[str, Any]) -> dict[str, Any]:
    found = _Found(tree)
    for repository, node in tree.items():
        if node is None or "module" in node:
            continue
        try:
            found[repository] = _load(node, use, loaded)
        except Exception as error:  # another author's code may raise anything when it is imported
            said = f"{type(error).__name__}: {error}"
            raise ImportError(f"the kernel '{repository}' that it depends on cannot be loaded: {said}") from error
    return found


def _load(node: Tree, use: Use, loaded: dict[str, Any]) -> Any:
    """Import a variant once, under the name in its metadata, as the client does."""
    folder = pathlib.Path(node["folder"])
    if node["folder"] not in loaded:
        deps = _modules(node["depends"], use, loaded)
        name = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))["id"]
        spec = importlib.util.spec_from_file_location(name, folder / "__init__.py")
        if spec is None or spec.loader is None:
            raise ImportError(f"'{folder.name}' has no package")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        with use(deps):
            spec.loader.exec_module(module)
        loaded[node["folder"]] = module
    return loaded[node["folder"]]


class _Found(dict[str, Any]):
    """The modules of kernels by repository; a missing kernel raises the error of a missing module."""

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self._tree = tree

    def get(self, repository: str, default: Any = None) -> Any:
        if repository in self or repository not in self._tree:
            return super().get(repository, default)
        node = self._tree[repository]
        if node is None:
            name = repository.rpartition("/")[2].replace("-", "_")
            raise ModuleNotFoundError(f"the kernel '{repository}' is not at hand", name=name)
        return importlib.import_module(node["module"])


class _StandIn(types.ModuleType):
    """The functions of the client that a kernel may use when it is loaded."""

    @classmethod
    def installed(cls) -> "_StandIn":
        """Return the stand-in that takes the client's place."""
        known = sys.modules.get("kernels")
        if not isinstance(known, cls):
            known = sys.modules["kernels"] = cls("kernels", "Stands in for the hub's client.")
            vars(known)["given"] = []
        return known

    @contextlib.contextmanager
    def use(self, modules: dict[str, Any]) -> Iterator[None]:
        """Provide these kernels to code that is loaded in the context."""
        given = vars(self)["given"]
        given.append(modules)
        yield
        given.pop()

    def get_kernel_dep(self, repo_id: str) -> Any:
        """Return a dependency of the kernel that is being loaded."""
        module = vars(self)["given"][-1].get(repo_id)
        if module is None:
            raise RuntimeError(f"'{repo_id}' is not in kernel-depends of build.toml")
        return module

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ModuleNotFoundError(f"'kernels.{name}' is not here: only get_kernel_dep is", name="kernels")


if BESIDE is not None and BESIDE.is_file():
    provide(json.loads(BESIDE.read_text(encoding="utf-8")))
