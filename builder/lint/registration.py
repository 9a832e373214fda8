"""Find ops that Python files register outside the namespace that the build generates.

Two versions of a kernel live in one process only because each registers its ops in a namespace of its own build.
"""

import ast
import tokenize
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from builder.errors import Problem, Span
from builder.kernel.tree import TooManyFilesError, Tree
from builder.lint.namespace import PREFIXES, Module, Namespace, NamespaceReader, Scope, is_library, qualified
from builder.lint.report import Located, locate
from builder.wording import quoted

_NAMED = frozenset({"Library", "_scoped_library", "custom_op", "triton_op", "define", "impl", "impl_abstract"})
"""The functions whose first argument names an op or a namespace; all called `register_…` do so, too."""
_KEYWORDS = frozenset({"name", "ns", "op", "op_name", "qualname"})
_LARGEST = 1024 * 1024
_LARGEST_PACKAGE = 8 * _LARGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFile:
    """A file of the package, parsed."""

    file: str
    lines: tuple[str, ...]
    module: Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    """A file that registers nothing."""

    name: str
    text: str
    package: bool


class _Modules(Mapping[str, Module]):
    """The modules of a package; a file that registers nothing is taken apart when another one uses its names."""

    def __init__(self, files: Iterable[PythonFile], others: Mapping[str, Plain]) -> None:
        self._known = {python.module.name: python.module for python in files}
        self._others = others

    def __getitem__(self, name: str) -> Module:
        if name not in self._known:
            plain = self._others[name]
            self._known[name] = parse(plain.text, file=name, name=name, package=plain.package).module
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._known, **self._others})

    def __len__(self) -> int:
        return len({**self._known, **self._others})


def check(package: Path, file: str, *, root: Path | None = None, tvm_ffi: bool | None = None) -> Iterator[Located]:
    """Read each Python file under `package`, which the user knows as `file`, and judge what it registers.

    Where the package is not in its usual place, `root` is the folder of the kernel and `tvm_ffi` its framework.
    """
    parsed: list[PythonFile] = []
    others: dict[str, Plain] = {}
    left = _LARGEST_PACKAGE
    for inside in _python_files(package, root or package.parent.parent):
        left -= _size(package / inside)
        if left < 0:
            reason = f"the package has more than {_LARGEST_PACKAGE >> 20} MiB of Python"
            yield _unreadable(f"{file}/{inside}", reason, None, ())
            break
        read = _read(package / inside, package, f"{file}/{inside}")
        match read:
            case PythonFile():
                parsed.append(read)
            case Plain():
                others[read.name] = read
            case _:
                yield read
    prefix = PREFIXES[package.parent.name == "tvm-ffi-ext" if tvm_ffi is None else tvm_ffi]
    yield from judge(parsed, prefix=prefix, others=others)


def _python_files(package: Path, root: Path) -> Iterator[str]:
    """Yield the files of a package, but none that a link brings from outside of the project: it is not ours to show."""
    tree = Tree.of(root)
    directory = package.absolute().relative_to(tree.root).as_posix()
    try:
        found = tree.walk(directory)
    except TooManyFilesError:  # a finding of the source set
        return
    for path in sorted(found):
        if path.endswith(".py") and tree.is_file(path) and tree.contains(path):
            yield path.removeprefix(f"{directory}/")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # said where it is read
        return 0


def judge(
    files: list[PythonFile], *, prefix: str = PREFIXES[0], others: Mapping[str, Plain] | None = None
) -> Iterator[Located]:
    """Yield the registrations of a package that are not in the namespace that `prefix` puts before a name.

    `others` are files that register nothing, by dotted name: what they define may be used.
    """
    judge = NamespaceReader(modules=_Modules(files, others or {}))
    for python in files:
        for call, scope in python.module.calls:
            problem = _judge(call, scope, judge, python.lines, prefix=prefix)
            if problem is not None:
                yield locate(python.file, problem, python.lines)


def parse(text: str, *, file: str, name: str, package: bool) -> PythonFile:
    """Parse one file; `name` is its dotted name.

    Raises:
        SyntaxError, ValueError, RecursionError: it is no Python of this interpreter's version.
    """
    return PythonFile(file=file, lines=_lines(text), module=Module.of(_tree(text), name, package=package))


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about strings of the file, such as '\d'
        return ast.parse(text)


def _may_register(text: str) -> bool:
    """Whether a file may use `torch.library`, whose name it has to spell; names are compared as Python does."""
    return "library" in (text if text.isascii() else unicodedata.normalize("NFKC", text))


def _read(path: Path, package: Path, file: str) -> PythonFile | Plain | Located:
    relative = path.relative_to(package.parent).with_suffix("")
    is_package = relative.name == "__init__"
    parts = relative.parts[:-1] if is_package else relative.parts
    text = ""
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"it is larger than {_LARGEST >> 20} MiB")  # noqa: TRY301  one place makes the finding
        with tokenize.open(path) as stream:
            text = stream.read()
        if not _may_register(text):
            _tree(text)
            return Plain(name=".".join(parts), text=text, package=is_package)
        return parse(text, file=file, name=".".join(parts), package=is_package)
    except SyntaxError as error:
        return _unreadable(file, error.msg, _place(error), _lines(text))
    except (OSError, ValueError, LookupError, RecursionError, MemoryError) as error:
        return _unreadable(file, str(error) or type(error).__name__, None, ())


def _lines(text: str) -> tuple[str, ...]:
    """Split as Python does: a form feed or a line separator ends no line."""
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def _place(error: SyntaxError) -> Span | None:
    if not error.lineno:
        return None
    column = max(error.offset or 1, 1)
    return Span(line=error.lineno, column=column, end_line=error.lineno, end_column=column + 1)


def _unreadable(file: str, reason: str, span: Span | None, lines: tuple[str, ...]) -> Located:
    problem = Problem(
        code="B122",
        severity="warning",
        message=f"this Python file cannot be read: {reason}",
        span=span,
        help="what it registers is not checked, and importing it will fail",
    )
    return locate(file, problem, lines)


def _judge(
    call: ast.Call, scope: Scope, judge: NamespaceReader, lines: tuple[str, ...], *, prefix: str
) -> Problem | None:
    used = _used(call, scope)
    if used is None:
        return None
    function, name = used
    match judge.judge(name, scope):
        case Namespace.OTHER:
            code, said = "B120", f"{function} registers {_text(name, lines)} outside the namespace of this build"
        case Namespace.UNKNOWN:
            code, said = "B121", f"{function} registers {_text(name, lines)}, whose namespace cannot be told here"
        case Namespace.GENERATED:
            return None
    return Problem(
        code=code,
        severity="warning" if code == "B120" else "note",
        message=said,
        span=_span(name, lines),
        help=_remedy(function, name, prefix),
    )


def _used(call: ast.Call, scope: Scope) -> tuple[str, ast.expr] | None:
    """Return the function of torch.library that a call uses, and the expression that names the op."""
    function, arguments = _applied(call, scope)
    name = _name_argument(arguments, call.keywords)
    if name is None:
        return None
    short = (function or "").removeprefix("torch.library.")
    if function is not None and short != function and (short in _NAMED or short.startswith("register_")):
        return function, name
    return _of_library(call, scope, name)


def _applied(call: ast.Call, scope: Scope) -> tuple[str | None, list[ast.expr]]:
    """Return the function that a call calls and its arguments, through `functools.partial`."""
    inner = call.func
    if isinstance(inner, ast.Call) and qualified(inner.func, scope) == "functools.partial" and inner.args:
        return qualified(inner.args[0], scope), [*inner.args[1:], *call.args]
    function = qualified(inner, scope)
    if function == "functools.partial" and call.args:
        return qualified(call.args[0], scope), call.args[1:]
    return function, call.args


def _of_library(call: ast.Call, scope: Scope, name: ast.expr) -> tuple[str, ast.expr] | None:
    """Judge `lib.define` and `lib.impl` where they name a namespace themselves: the library's own is judged already."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in {"define", "impl"}):
        return None
    whole = isinstance(name, ast.Constant) and isinstance(name.value, str) and "::" in name.value.split("(")[0]
    return (f"Library.{call.func.attr}", name) if whole and _is_library(call.func.value, scope) else None


def _is_library(expression: ast.expr, scope: Scope) -> bool:
    bindings = scope.lookup(expression.id)[0] if isinstance(expression, ast.Name) else [expression]
    return any(isinstance(binding, ast.Call) and is_library(qualified(binding.func, scope)) for binding in bindings)


def _name_argument(arguments: list[ast.expr], keywords: list[ast.keyword]) -> ast.expr | None:
    if arguments and not isinstance(arguments[0], ast.Starred):
        return arguments[0]
    return next((keyword.value for keyword in keywords if keyword.arg in _KEYWORDS), None)


def _text(name: ast.expr, lines: tuple[str, ...]) -> str:
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        return quoted(name.value)
    span = _span(name, lines)
    end = span.end_column - 1 if span.end_line == span.line else None
    return quoted(lines[span.line - 1][span.column - 1 : end])


def _remedy(function: str, name: ast.expr, prefix: str) -> str:
    if is_library(function):
        if prefix == PREFIXES[0]:
            return "write 'from ._ops import ops', and Library(ops.name, …)"
        return f"""write 'from ._ops import {prefix}', and Library({prefix}("").removesuffix("::"), …)"""
    literal = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
    op = literal.split("(")[0].split("::")[-1] or "<op>"
    return f"""write 'from ._ops import {prefix}', and {prefix}("{op}")"""


def _span(node: ast.expr, lines: tuple[str, ...]) -> Span:
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Span(
        line=node.lineno,
        column=_characters(lines[node.lineno - 1], node.col_offset) + 1,
        end_line=end_line,
        end_column=_characters(lines[end_line - 1], end) + 1,
    )


def _characters(line: str, offset: int) -> int:
    """Turn an offset in UTF-8 bytes, which `ast` counts in, into characters."""
    return offset if line.isascii() else len(line.encode("utf-8")[:offset].decode("utf-8", "ignore"))
