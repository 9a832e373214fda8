"""A public function that raises an error says which."""

import ast
import functools
import itertools
from pathlib import Path

ROOT = Path(__file__).parent.parent / "builder"


@functools.cache
def trees():
    """Return the syntax of each module."""
    return {
        path.relative_to(ROOT.parent).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(ROOT.rglob("*.py"))
        if not path.is_relative_to(ROOT / "nix")
        and not path.is_relative_to(ROOT / "cli")  # `main` catches what these raise
    }


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def name_of(node):
    """Return the last part of a name, of an attribute, or of what is called."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@functools.cache
def errors():
    """Return the names of the public exceptions of the package."""
    classes = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {"Exception", "ValueError"}
    for _ in classes:
        found |= {node.name for node in classes if {name_of(base) for base in node.bases} & found}
    return {name for name in found if not name.startswith("_")} - {"Exception"}


def functions(tree):
    """Yield the functions of a module and of its classes, with the class."""
    for node in tree.body:
        if isinstance(node, FUNCTIONS):
            yield None, node
        elif isinstance(node, ast.ClassDef):
            yield from ((node, each) for each in node.body if isinstance(each, FUNCTIONS))


def own(function):
    """Yield the nodes of a function that run when it is called, with what it catches left out."""
    pending = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            continue
        kinds = [handler.type for handler in node.handlers] if isinstance(node, ast.Try) else []
        caught = [each for kind in kinds for each in (kind.elts if isinstance(kind, ast.Tuple) else [kind])]
        if any(each is not None and name_of(each) in errors() for each in caught):
            pending += [*itertools.chain.from_iterable(handler.body for handler in node.handlers), *node.orelse]
        else:
            pending += ast.iter_child_nodes(node)


@functools.cache
def makers():
    """Return the functions that return an error for another one to raise."""
    typed = [node for tree in trees().values() for _, node in functions(tree) if node.returns is not None]
    return {node.name: name_of(node.returns) for node in typed if name_of(node.returns) in errors()}


def raised(function):
    """Return the errors of ours that a function raises itself."""
    names = {name_of(node.exc) for node in own(function) if isinstance(node, ast.Raise) and node.exc}
    return {makers().get(name, name) for name in names} & errors()


def called(function):
    """Return the names of what a function calls itself."""
    return {name_of(each) for each in own(function) if isinstance(each, ast.Call)}


def of_private(tree):
    """Return for each private function of a module what it raises, itself or by others of these."""
    nodes = {node.name: node for _, node in functions(tree) if node.name.startswith("_")}
    found = {name: raised(node) for name, node in nodes.items()}
    for _ in nodes:
        found = {
            name: found[name].union(*(found[other] for other in called(node) & nodes.keys()))
            for name, node in nodes.items()
        }
    return found


def test_a_public_function_that_raises_says_so():
    """It raises itself, or by private ones that it calls; a class may say it of all its functions."""
    silent = []
    for path, tree in trees().items():
        private = of_private(tree)
        for owner, node in functions(tree):
            if node.name.startswith("_") or (owner is not None and owner.name.startswith("_")):
                continue
            kinds = raised(node).union(*(private[name] for name in called(node) & private.keys()))
            said = [ast.get_docstring(each) or "" for each in (owner, node) if each is not None]
            if kinds and "Raises:" not in "".join(said):
                silent.append(f"{path}:{node.lineno}: {node.name} raises {', '.join(sorted(kinds))}")
    assert silent == []


def test_there_are_functions_that_raise():
    assert len([1 for tree in trees().values() for _, node in functions(tree) if raised(node)]) > 100
