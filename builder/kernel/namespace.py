"""Decide whether an expression in a Python file names an op in the namespace that the build generates."""

import ast
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")

PREFIXES = ("add_op_namespace_prefix", "torch_add_op_namespace_prefix")
_GENERATED = ("ops", *PREFIXES)
_GENERATED_OPS = re.compile(r"\._ops(?:_[a-z0-9_]+)?\.ops\.")
_STARRED = {"torch.library": ("Library", "custom_op", "triton_op", "define", "impl", "impl_abstract", "register_fake")}
_MOST_BINDINGS = 256
"""The most values of one name that are followed; a loop may bind more."""
_MOST_STEPS = 50
"""The most steps that an expression is followed: names may refer to each other in a circle."""
_DEEP = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A name bound by an import, with the dotted name that it stands for."""

    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A name that the caller of a function binds."""


Binding = ast.expr | Function | Imported | Parameter


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NameScope:
    """The names that a module, class or function binds; filled while the file is read."""

    parent: "NameScope | None" = None
    names: dict[str, list[Binding]] = field(default_factory=dict)
    followed: dict[str, "str | tuple[ast.expr, NameScope] | None"] = field(default_factory=dict)
    """The meaning of names, as far as it was looked up after reading the file."""

    def bind(self, name: str, binding: Binding) -> None:
        """Add another possible value of `name`."""
        bound = self.names.setdefault(name, [])
        if len(bound) < _MOST_BINDINGS:
            bound.append(binding)
        elif len(bound) == _MOST_BINDINGS:
            bound.append(Parameter())  # further values are not followed, and count as unknown

    def lookup(self, name: str) -> tuple[list[Binding], "NameScope"]:
        """Return all possible values of `name`, and the scope that binds it."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name], scope
            scope = scope.parent
        return [], self


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A Python file: its calls, each with its scope."""

    scope: NameScope
    calls: tuple[tuple[ast.Call, NameScope], ...]

    @classmethod
    def of(cls, tree: ast.Module, name: str, *, package: bool) -> "Module":
        """Read a parsed file with the dotted name `relu.layers`; `package` means that it is an `__init__.py`."""
        top = NameScope()
        calls: list[tuple[ast.Call, NameScope]] = []
        base = name.split(".") if package else name.split(".")[:-1]
        # An explicit stack: an expression may be nested deeper than Python's recursion limit.
        stack: list[tuple[ast.AST, NameScope]] = [(tree, top)]
        while stack:
            node, scope = stack.pop()
            if isinstance(node, ast.Call):
                calls.append((node, scope))
            for bound, binding in _bindings(node, base):
                scope.bind(bound, binding)
            stack.extend(reversed(list(_children(node, scope))))
        return cls(scope=top, calls=tuple(calls))


def qualified(expression: ast.expr, scope: NameScope) -> str | None:
    """Return the dotted name of an expression, such as `torch.library.impl`; None if it is uncertain."""
    parts: list[str] = []
    for _ in range(_MOST_STEPS):
        match expression:
            case (
                ast.Attribute(value=value, attr=name)
                | ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(name)), *_])
            ):
                expression = value
                parts.append(name)
            case ast.Name(id=name):
                followed = _follow(name, scope)
                if isinstance(followed, str):
                    return ".".join([followed, *reversed(parts)])
                if followed is None:
                    return None
                expression, scope = followed
            case _:
                return None
    return None


def _follow(name: str, scope: NameScope) -> str | tuple[ast.expr, NameScope] | None:
    """Return the dotted name or the expression of a name's first binding; None if there is none."""
    bindings, where = scope.lookup(name)
    if name not in where.followed:
        known = (each for each in bindings if isinstance(each, Imported | ast.Name | ast.Attribute | ast.Call))
        first = next(known, None)
        if isinstance(first, Imported):
            where.followed[name] = first.target
        else:
            where.followed[name] = None if first is None else (first, where)
    return where.followed[name]


def _children(node: ast.AST, scope: NameScope) -> Iterator[tuple[ast.AST, NameScope]]:
    """Yield the parts of `node`, each with its scope: the body of a function or class has its own."""
    if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
        yield from ((child, scope) for child in ast.iter_child_nodes(node))
        return
    inner = NameScope(parent=scope)
    if not isinstance(node, ast.ClassDef):
        given = node.args
        yield given, scope
        for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if argument is not None:
                inner.bind(argument.arg, Parameter())
    outside = [] if isinstance(node, ast.Lambda) else node.decorator_list
    yield from ((decorator, scope) for decorator in outside)
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    yield from ((statement, inner) for statement in body)


def _bindings(node: ast.AST, base: list[str]) -> Iterator[tuple[str, Binding]]:  # noqa: C901, PLR0912  one for each statement
    match node:
        case ast.Import(names=aliases):
            for alias in aliases:
                first = alias.name.split(".")[0]
                yield alias.asname or first, Imported(target=alias.name if alias.asname else first)
        case ast.ImportFrom(names=aliases, level=level, module=module):
            above = base[: len(base) - level + 1] if level else []
            origin = ".".join([*above, *([module] if module else [])])
            for alias in aliases:
                if alias.name != "*":
                    yield alias.asname or alias.name, Imported(target=f"{origin}.{alias.name}")
                    continue
                last = origin.rsplit(".", maxsplit=1)[-1]
                generated = last == "_ops" or last.startswith("_ops_")
                for name in _GENERATED if generated else _STARRED.get(origin, ()):
                    yield name, Imported(target=f"{origin}.{name}")
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _targets(target, value)
        case (
            ast.For(target=target, iter=value)
            | ast.AsyncFor(target=target, iter=value)
            | ast.comprehension(target=target, iter=value)
        ):
            # Each element of the loop's literal list is a possible value.
            elements = value.elts if isinstance(value, ast.Tuple | ast.List | ast.Set) else [value]
            for element in elements[: _MOST_BINDINGS + 1]:
                yield from _targets(target, element)
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield from _targets(target, value)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, node


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Binding]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        known = len(parts) == len(target.elts) and not any(isinstance(part, ast.Starred) for part in parts)
        for index, element in enumerate(target.elts):
            yield from _targets(element, parts[index] if known else value)


class Namespace(Enum):
    """The namespace of a name, as far as the files tell."""

    GENERATED = "in the generated namespace"
    OTHER = "in a namespace of its own"
    UNKNOWN = "not to be seen here"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceReader:
    """Judges the expressions of one package."""

    scope_of: Callable[[str], NameScope | None]
    """Returns the scope of a module of the package by its dotted name; None for other modules."""
    known: dict[Hashable, Any] = field(default_factory=dict, compare=False)
    """Cached namespaces, by expression, name, called name or function, with the scope."""

    def judge(self, expression: ast.expr, scope: NameScope, depth: int = 0) -> Namespace:
        """Return the namespace that an expression names."""
        return self._once((id(expression), id(scope)), lambda: self._judge(expression, scope, depth))

    def _judge(self, expression: ast.expr, scope: NameScope, depth: int) -> Namespace:  # noqa: C901, PLR0911  one for each kind
        if depth > _DEEP:
            return Namespace.UNKNOWN
        called = qualified(expression.func, scope) if isinstance(expression, ast.Call) else None
        if called is not None and "." in called and called.split(".")[-1] in PREFIXES:
            return Namespace.GENERATED  # wherever the function was imported from
        dotted = None if isinstance(expression, ast.Call) else qualified(expression, scope)
        if is_generated(dotted):
            return Namespace.GENERATED
        if "::" in _leading(expression):
            return Namespace.OTHER
        match expression:
            case ast.Constant():
                return Namespace.OTHER
            case ast.Name(id=name):
                bindings, where = scope.lookup(name)
                return self._name(name, bindings, where, depth + 1)
            case ast.IfExp(body=first, orelse=second):
                return _all(self.judge(part, scope, depth + 1) for part in (first, second))
            case ast.BoolOp(values=values):
                return _all(self.judge(part, scope, depth + 1) for part in values)
            case ast.Call():
                return self._call(expression, scope, depth + 1)
            case ast.Attribute():
                known = (dotted or "").startswith("torch.ops.")
                return Namespace.OTHER if known else self._dotted(dotted, depth + 1)
        return self._parts(ast.iter_child_nodes(expression), scope, depth + 1)

    def _call(self, call: ast.Call, scope: NameScope, depth: int) -> Namespace:
        if is_library(qualified(call.func, scope)):
            return Namespace.GENERATED  # its own namespace is judged where it is created
        if isinstance(call.func, ast.Name):
            made = self._made(call.func, scope, depth)
            if made is not None:
                return made
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        parts = [call.func.value, *arguments] if isinstance(call.func, ast.Attribute) else arguments
        namespace = self._parts(parts, scope, depth)
        # The result of an unknown function on a literal is unknown, but a string method's is not.
        literal = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant)
        return Namespace.UNKNOWN if namespace is Namespace.OTHER and not literal else namespace

    def _made(self, name: ast.Name, scope: NameScope, depth: int) -> Namespace | None:
        """Judge the results of the functions that `name` may stand for; None if it stands for none."""
        bindings, where = scope.lookup(name.id)

        def judge() -> Namespace | None:
            made = [self._returned(function, place, depth) for function, place in self._functions(bindings, where)]
            return _all(made) if made else None

        return self._once((f"{name.id}()", id(where)), judge)

    def _functions(self, bindings: list[Binding], where: NameScope) -> Iterator[tuple[Function, NameScope]]:
        """Yield the package's functions that a name with these bindings may stand for."""
        for binding in bindings:
            if isinstance(binding, Function):
                yield binding, where
            elif isinstance(binding, Imported):
                module, _, attribute = binding.target.rpartition(".")
                top = self.scope_of(module)
                if top is not None:
                    found = top.names.get(attribute, [])
                    yield from ((function, top) for function in found if isinstance(function, Function))

    def _returned(self, function: Function, where: NameScope, depth: int) -> Namespace:
        # Outside its scope, a function's parameters and locals must not be confused with names of the caller.
        def judge() -> Namespace:
            values = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
            return _all(self.judge(value, where, depth) for value in values)

        return self._once((id(function), id(where)), judge)

    def _parts(self, nodes: Iterable[ast.AST], scope: NameScope, depth: int) -> Namespace:
        """Judge a text by its parts: one generated part makes the text generated."""
        expressions = [node for node in nodes if isinstance(node, ast.expr)]
        found = {self.judge(part, scope, depth) for part in expressions}
        for namespace in (Namespace.GENERATED, Namespace.UNKNOWN):
            if namespace in found:
                return namespace
        return Namespace.OTHER if found else Namespace.UNKNOWN

    def _binding(self, binding: Binding, where: NameScope, depth: int) -> Namespace:
        if isinstance(binding, Parameter):
            return Namespace.UNKNOWN
        if isinstance(binding, Imported):
            return self._dotted(binding.target, depth)
        if isinstance(binding, Function):
            return Namespace.GENERATED  # a decorated op is judged at its decorator
        return self.judge(binding, where, depth)

    def _dotted(self, name: str | None, depth: int) -> Namespace:
        """Judge a name in another module of the package."""
        if is_generated(name):
            return Namespace.GENERATED
        module, _, attribute = (name or "").rpartition(".")
        scope = None if depth > _DEEP else self.scope_of(module)
        if scope is None:
            return Namespace.UNKNOWN
        return self._name(attribute, scope.names.get(attribute, []), scope, depth + 1)

    def _once(self, key: Hashable, judge: Callable[[], T]) -> T:
        """Judge a key once; while it is being judged, a reference back to it counts as unknown."""
        if key not in self.known:
            self.known[key] = Namespace.UNKNOWN
            self.known[key] = judge()
        found: T = self.known[key]
        return found

    def _name(self, name: str, bindings: list[Binding], where: NameScope, depth: int) -> Namespace:
        """Judge all possible values of a name in a scope."""
        every = (self._binding(binding, where, depth) for binding in bindings)
        return self._once((name, id(where)), lambda: _all(every))


def is_library(name: str | None) -> bool:
    """Whether a dotted name creates a library of ops, whose namespace is its first argument."""
    return name in {"torch.library.Library", "torch.library._scoped_library"}


def is_generated(name: str | None) -> bool:
    """Whether a dotted name is `ops` of the generated `_ops.py` or of an extension's module, or a part of it."""
    return name is not None and _GENERATED_OPS.search(f".{name}.") is not None


def _leading(expression: ast.expr) -> str:
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
    """Return the worst namespace, since every possible value must be in the generated one."""
    found = set(namespaces)
    for namespace in (Namespace.OTHER, Namespace.UNKNOWN):
        if namespace in found:
            return namespace
    return Namespace.GENERATED if found else Namespace.UNKNOWN
