"""Whether an expression names an op in the namespace that the build generates."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from builder.lint.python_names import Binding, Function, Imported, Module, Parameter, Scope, qualified

PREFIXES = ("add_op_namespace_prefix", "torch_add_op_namespace_prefix")
_DEEP = 40
_GENERATED_OPS = re.compile(r"\._ops(?:_[a-z0-9_]+)?\.ops\.")


class Namespace(Enum):
    """What reading the files tells about a name."""

    GENERATED = "in the generated namespace"
    OTHER = "in a namespace of its own"
    UNKNOWN = "not to be seen here"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceReader:
    """Judges expressions of one package; `modules` by dotted name."""

    modules: Mapping[str, Module]
    known: dict[tuple[int, int], Namespace] = field(default_factory=dict, compare=False)
    """Namespaces by expression and scope: names refer to each other, and each is judged once."""
    named: dict[tuple[str, int], Namespace] = field(default_factory=dict, compare=False)
    """Namespaces by name and scope, and by dotted name."""
    called: dict[tuple[str, int], Namespace | None] = field(default_factory=dict, compare=False)
    """Namespaces by the name of a function and scope."""
    returned: dict[tuple[int, int], Namespace] = field(default_factory=dict, compare=False)
    """Namespaces by function and scope."""

    def judge(self, expression: ast.expr, scope: Scope, depth: int = 0) -> Namespace:
        """Follow an expression to what it names."""
        key = (id(expression), id(scope))
        if key not in self.known:
            self.known[key] = Namespace.UNKNOWN  # what it is to itself, if it refers to itself
            self.known[key] = self._judge(expression, scope, depth)
        return self.known[key]

    def _judge(self, expression: ast.expr, scope: Scope, depth: int) -> Namespace:  # noqa: PLR0911  one for each kind
        if depth > _DEEP:
            return Namespace.UNKNOWN
        if self._generated(expression, scope):
            return Namespace.GENERATED
        if "::" in _leading(expression):
            return Namespace.OTHER
        match expression:
            case ast.Constant():
                return Namespace.OTHER
            case ast.Name(id=name):
                bindings, where = scope.lookup(name)
                return self._once((name, id(where)), bindings, where, depth + 1)
            case ast.IfExp(body=first, orelse=second):
                return _all(self.judge(part, scope, depth + 1) for part in (first, second))
            case ast.BoolOp(values=values):
                return _all(self.judge(part, scope, depth + 1) for part in values)
            case ast.Call():
                return self._call(expression, scope, depth + 1)
            case ast.Attribute():
                known = (qualified(expression, scope) or "").startswith("torch.ops.")
                return Namespace.OTHER if known else self._dotted(qualified(expression, scope), depth + 1)
        return self._parts(ast.iter_child_nodes(expression), scope, depth + 1)

    def _generated(self, expression: ast.expr, scope: Scope) -> bool:
        """Whether this very expression is the generated prefix function, called, or the generated `ops`."""
        if isinstance(expression, ast.Call):
            return is_prefix(qualified(expression.func, scope))
        return is_generated(qualified(expression, scope))

    def _call(self, call: ast.Call, scope: Scope, depth: int) -> Namespace:
        if is_library(qualified(call.func, scope)):
            return Namespace.GENERATED  # its own namespace is judged where it is made
        if isinstance(call.func, ast.Name):
            made = self._made(call.func, scope, depth)
            if made is not None:
                return made
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        parts = [call.func.value, *arguments] if isinstance(call.func, ast.Attribute) else arguments
        namespace = self._parts(parts, scope, depth)
        # What an unknown function makes of a literal is not to be seen; a method of a string is.
        literal = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant)
        return Namespace.UNKNOWN if namespace is Namespace.OTHER and not literal else namespace

    def _made(self, name: ast.Name, scope: Scope, depth: int) -> Namespace | None:
        """Judge what the functions return that `name` may stand for; None where it stands for none."""
        _, where = scope.lookup(name.id)
        key = (f"{name.id}()", id(where))
        if key not in self.called:
            self.called[key] = Namespace.UNKNOWN
            made = [self._returned(function, place, depth) for function, place in self._functions(name, scope)]
            self.called[key] = _all(made) if made else None
        return self.called[key]

    def _functions(self, name: ast.Name, scope: Scope) -> Iterator[tuple[Function, Scope]]:
        """Yield the functions of the package that `name` may stand for."""
        bindings, where = scope.lookup(name.id)
        for binding in bindings:
            if isinstance(binding, Function):
                yield binding, where
            elif isinstance(binding, Imported):
                module, _, attribute = binding.target.rpartition(".")
                if module in self.modules:
                    top = self.modules[module].scope
                    found = top.names.get(attribute, [])
                    yield from ((function, top) for function in found if isinstance(function, Function))

    def _returned(self, function: Function, where: Scope, depth: int) -> Namespace:
        # The function's own scope is gone: its parameters and locals are looked up where it stands, and are hidden.
        key = (id(function), id(where))
        if key not in self.returned:
            self.returned[key] = Namespace.UNKNOWN
            values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
            self.returned[key] = _all(self.judge(value, where, depth) for value in values)
        return self.returned[key]

    def _parts(self, nodes: Iterable[ast.AST], scope: Scope, depth: int) -> Namespace:
        """Judge a text by its parts: one generated part makes the whole generated."""
        expressions = [node for node in nodes if isinstance(node, ast.expr)]
        found = {self.judge(part, scope, depth) for part in expressions}
        for namespace in (Namespace.GENERATED, Namespace.UNKNOWN):
            if namespace in found:
                return namespace
        return Namespace.OTHER if found else Namespace.UNKNOWN

    def _binding(self, binding: Binding, where: Scope, depth: int) -> Namespace:
        if isinstance(binding, Parameter):
            return Namespace.UNKNOWN
        if isinstance(binding, Imported):
            return self._dotted(binding.target, depth)
        if isinstance(binding, Function):
            return Namespace.GENERATED  # a function that a decorator made an op is judged at the decorator
        return self.judge(binding, where, depth)

    def _dotted(self, name: str | None, depth: int) -> Namespace:
        """Judge what another module of the package binds."""
        if is_generated(name):
            return Namespace.GENERATED
        module, _, attribute = (name or "").rpartition(".")
        if module not in self.modules or depth > _DEEP:
            return Namespace.UNKNOWN
        scope = self.modules[module].scope
        return self._once((attribute, id(scope)), scope.names.get(attribute, []), scope, depth + 1)

    def _once(self, key: tuple[str, int], bindings: list[Binding], where: Scope, depth: int) -> Namespace:
        """Judge all that a name of a scope may stand for, once: modules import each other's names in circles."""
        if key not in self.named:
            self.named[key] = Namespace.UNKNOWN
            self.named[key] = _all(self._binding(binding, where, depth) for binding in bindings)
        return self.named[key]


def is_prefix(name: str | None) -> bool:
    """Whether a dotted name is that of the generated prefix function, wherever it was imported from."""
    return name is not None and "." in name and name.split(".")[-1] in PREFIXES


def is_library(name: str | None) -> bool:
    """Whether a dotted name makes a library of ops, whose namespace is its first argument."""
    return name in {"torch.library.Library", "torch.library._scoped_library"}


def is_generated(name: str | None) -> bool:
    """Whether a dotted name is `ops` of the generated `_ops.py`, or of that of an extension, or a part of it."""
    return name is not None and _GENERATED_OPS.search(f".{name}.") is not None


def _leading(expression: ast.expr) -> str:
    """Return the literal that a text starts with."""
    for _ in range(_DEEP):
        match expression:
            case ast.Constant(value=str(text)):
                return text
            case ast.JoinedStr(values=[first, *_]):
                expression = first
            case ast.BinOp(left=first, op=ast.Add() | ast.Mod()):
                expression = first
            case ast.Call(func=ast.Attribute(value=first, attr="format" | "join")):
                expression = first
            case _:
                return ""
    return ""


def _all(namespaces: Iterable[Namespace]) -> Namespace:
    """Return the worst: a name must be in the generated namespace whatever it stands for."""
    found = set(namespaces)
    for namespace in (Namespace.OTHER, Namespace.UNKNOWN):
        if namespace in found:
            return namespace
    return Namespace.GENERATED if found else Namespace.UNKNOWN
