"""Tell whether an expression of a Python file names an op in the namespace that the build generates."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

PREFIXES = ("add_op_namespace_prefix", "torch_add_op_namespace_prefix")
_GENERATED = ("ops", *PREFIXES)
_GENERATED_OPS = re.compile(r"\._ops(?:_[a-z0-9_]+)?\.ops\.")
_STARRED = {"torch.library": ("Library", "custom_op", "triton_op", "define", "impl", "impl_abstract", "register_fake")}
_MOST_BINDINGS = 256
"""The most things that one name may stand for; a loop over more is not followed to its end."""
_MOST_STEPS = 50
"""Steps after which an expression is not followed: names may refer to each other in a circle."""
_DEEP = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A name that an import binds: the dotted name of what it stands for."""

    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A name that a caller binds."""


Binding = ast.expr | Function | Imported | Parameter


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scope:
    """The names that a module, class or function binds; filled while the file is read."""

    parent: "Scope | None" = None
    names: dict[str, list[Binding]] = field(default_factory=dict)
    followed: dict[str, "str | tuple[ast.expr, Scope] | None"] = field(default_factory=dict)
    """The meaning of its names, as far as it was looked up after the file was read."""

    def bind(self, name: str, binding: Binding) -> None:
        """Add one more thing that `name` may stand for."""
        bound = self.names.setdefault(name, [])
        if len(bound) < _MOST_BINDINGS:
            bound.append(binding)
        elif len(bound) == _MOST_BINDINGS:
            bound.append(Parameter())  # what else it may stand for is not looked at, and counts as not to be told

    def lookup(self, name: str) -> tuple[list[Binding], "Scope"]:
        """Return all that `name` may stand for, and the scope that says so."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name], scope
            scope = scope.parent
        return [], self


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A Python file: its calls, each with the scope it stands in."""

    name: str
    """Dotted name in the package, `relu.layers`."""
    scope: Scope
    calls: tuple[tuple[ast.Call, Scope], ...]

    @classmethod
    def of(cls, tree: ast.Module, name: str, *, package: bool) -> "Module":
        """Read a parsed file; `package` says that it is an `__init__.py`."""
        top = Scope()
        calls: list[tuple[ast.Call, Scope]] = []
        base = name.split(".") if package else name.split(".")[:-1]
        # A stack and no recursion: an expression may be nested deeper than Python's own stack.
        stack: list[tuple[ast.AST, Scope]] = [(tree, top)]
        while stack:
            node, scope = stack.pop()
            if isinstance(node, ast.Call):
                calls.append((node, scope))
            for bound, binding in _bindings(node, base):
                scope.bind(bound, binding)
            stack.extend(reversed(list(_children(node, scope))))
        return cls(name=name, scope=top, calls=tuple(calls))


def qualified(expression: ast.expr, scope: Scope) -> str | None:
    """Return the dotted name that an expression certainly stands for, such as `torch.library.impl`."""
    parts: list[str] = []
    for _ in range(_MOST_STEPS):
        step = _attribute(expression)
        if step is not None:
            expression, name = step
            parts.append(name)
        elif isinstance(expression, ast.Name):
            followed = _follow(expression.id, scope)
            if isinstance(followed, str):
                return ".".join([followed, *reversed(parts)])
            if followed is None:
                return None
            expression, scope = followed
        else:
            return None
    return None


def _attribute(expression: ast.expr) -> tuple[ast.expr, str] | None:
    match expression:
        case ast.Attribute(value=value, attr=name):
            return value, name
        case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(name)), *_]):
            return value, name
    return None


def _follow(name: str, scope: Scope) -> str | tuple[ast.expr, Scope] | None:
    bindings, where = scope.lookup(name)
    if name not in where.followed:
        where.followed[name] = _first_step(bindings, where)
    return where.followed[name]


def _first_step(bindings: list[Binding], where: Scope) -> str | tuple[ast.expr, Scope] | None:
    for binding in bindings:
        if isinstance(binding, Imported):
            return binding.target
        if isinstance(binding, ast.Name | ast.Attribute | ast.Call):
            return binding, where
    return None


def _children(node: ast.AST, scope: Scope) -> Iterator[tuple[ast.AST, Scope]]:
    """Yield the parts of `node`, the body of a function or class in a scope of its own."""
    if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
        yield from ((child, scope) for child in ast.iter_child_nodes(node))
        return
    inner = Scope(parent=scope)
    if not isinstance(node, ast.ClassDef):
        yield node.args, scope
        for argument in _arguments(node.args):
            inner.bind(argument.arg, Parameter())
    outside = [] if isinstance(node, ast.Lambda) else node.decorator_list
    yield from ((decorator, scope) for decorator in outside)
    body = [node.body] if isinstance(node, ast.Lambda) else node.body
    yield from ((statement, inner) for statement in body)


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None)


def _bindings(node: ast.AST, base: list[str]) -> Iterator[tuple[str, Binding]]:  # noqa: C901  one for each statement
    match node:
        case ast.Import(names=aliases):
            for alias in aliases:
                first = alias.name.split(".")[0]
                yield alias.asname or first, Imported(target=alias.name if alias.asname else first)
        case ast.ImportFrom(names=aliases):
            origin = _origin(node, base)
            for alias in aliases:
                yield from _imported(origin, alias)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _targets(target, value)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield from _elements(target, value)
        case ast.comprehension(target=target, iter=value):
            yield from _elements(target, value)
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield from _targets(target, value)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name, node


def _origin(node: ast.ImportFrom, base: list[str]) -> str:
    if not node.level:
        return node.module or ""
    above = base[: len(base) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _imported(origin: str, alias: ast.alias) -> Iterator[tuple[str, Binding]]:
    if alias.name != "*":
        yield alias.asname or alias.name, Imported(target=f"{origin}.{alias.name}")
        return
    module = origin.rsplit(".", maxsplit=1)[-1]
    names = _GENERATED if module == "_ops" or module.startswith("_ops_") else _STARRED.get(origin, ())
    yield from ((name, Imported(target=f"{origin}.{name}")) for name in names)


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Binding]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        known = len(parts) == len(target.elts) and not any(isinstance(part, ast.Starred) for part in parts)
        for index, element in enumerate(target.elts):
            yield from _targets(element, parts[index] if known else value)


def _elements(target: ast.expr, iterated: ast.expr) -> Iterator[tuple[str, Binding]]:
    """Bind the target of a loop to each element that stands in the loop's own list."""
    elements = iterated.elts if isinstance(iterated, ast.Tuple | ast.List | ast.Set) else [iterated]
    for element in elements[: _MOST_BINDINGS + 1]:
        yield from _targets(target, element)


class Namespace(Enum):
    """The namespace of a name, as far as reading the files tells."""

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
        """Judge what the functions that `name` may stand for return; None where it stands for none."""
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
