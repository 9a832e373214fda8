"""What the names of a Python file stand for, as far as reading it can tell."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A name that an import binds: the dotted name of what it stands for."""

    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A name that a caller binds."""


_MOST_BINDINGS = 256
"""Things that one name may stand for; a loop over more is not followed to its end."""

Binding = ast.expr | Function | Imported | Parameter


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scope:
    """The names that a module, class or function binds; filled while the file is read."""

    parent: "Scope | None" = None
    names: dict[str, list[Binding]] = field(default_factory=dict)
    followed: dict[str, "str | tuple[ast.expr, Scope] | None"] = field(default_factory=dict)
    """What its names stand for, as far as it was looked up after the file was read."""

    def bind(self, name: str, binding: Binding) -> None:
        """Add one more thing that `name` may stand for."""
        bound = self.names.setdefault(name, [])
        if len(bound) < _MOST_BINDINGS:
            bound.append(binding)
        elif len(bound) == _MOST_BINDINGS:
            bound.append(Parameter())  # what else it may stand for is not looked at, and counts as not to be told

    def lookup(self, name: str) -> tuple[list[Binding], "Scope"]:
        """Return what `name` may stand for, and the scope that says so."""
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
    for _ in range(_DEEP):
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


_DEEP = 50
"""Steps after which an expression is not followed: names may refer to each other in a circle."""


def _attribute(expression: ast.expr) -> tuple[ast.expr, str] | None:
    """Take `a.b`, or `getattr(a, "b")`, apart."""
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


_GENERATED = ("ops", "add_op_namespace_prefix", "torch_add_op_namespace_prefix")
_STARRED = {"torch.library": ("Library", "custom_op", "triton_op", "define", "impl", "impl_abstract", "register_fake")}


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
