"""Find ops that Python files register outside the namespace that the build generates, and calls of ops that are none.

Two versions of a kernel can be loaded in one process only because each registers its ops in its build's own namespace.
"""

import ast
import tokenize
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from builder.errors import Problem, Severity, Span
from builder.kernel import called_ops
from builder.kernel.namespace import PREFIXES, Module, NameScope, Namespace, NamespaceReader, is_library, qualified
from builder.kernel.tree import TooManyFilesError, Tree
from builder.lint.findings import Located, locate
from builder.wording import nearest, quoted

_NAMED = frozenset({"Library", "_scoped_library", "custom_op", "triton_op", "define", "impl", "impl_abstract"})
"""Functions whose first argument names an op or a namespace; functions named `register_…` have one, too."""
_KEYWORDS = frozenset({"name", "ns", "op", "op_name", "qualname"})
_LARGEST = 1024 * 1024
_LARGEST_PACKAGE = 8 * _LARGEST


@dataclass(frozen=True, kw_only=True)
class PythonFile:
    """A Python file of the package."""

    file: str
    name: str
    """The dotted name in the package, such as `relu.layers`."""
    text: str
    package: bool
    """Whether it is an `__init__.py`."""

    @property
    def lines(self) -> list[str]:
        """The lines of the file, as Python splits them: form feeds and line separators do not end a line."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    @property
    def may_register(self) -> bool:
        """Whether the file may use `torch.library`: it must then contain the name, normalised as Python does."""
        return "library" in (self.text if self.text.isascii() else unicodedata.normalize("NFKC", self.text))

    @cached_property
    def module(self) -> Module:
        """The calls and names of the file."""
        return Module.of(_tree(self.text), self.name, package=self.package)


def check(
    package: Path,
    file: str,
    *,
    root: Path | None = None,
    tvm_ffi: bool | None = None,
    registered: frozenset[str] | None = None,
) -> Iterator[Located]:
    """Read each Python file under `package`, which the user knows as `file`, and judge what it registers and calls.

    Where the package is not in its usual place, `root` is the folder of the kernel and `tvm_ffi` its framework.
    `registered` are the ops that its other sources may register, where that can be read.
    """
    files: list[PythonFile] = []
    left = _LARGEST_PACKAGE
    for inside in _python_files(package, root or package.parent.parent):
        left -= _size(package / inside)
        if left < 0:
            reason = f"the package has more than {_LARGEST_PACKAGE >> 20} MiB of Python"
            yield _unreadable(f"{file}/{inside}", reason)
            break
        read = _read(package / inside, package, f"{file}/{inside}")
        if isinstance(read, PythonFile):
            files.append(read)
        else:
            yield read
    yield from judge(files, prefix=PREFIXES[package.parent.name == "tvm-ffi-ext" if tvm_ffi is None else tvm_ffi])
    if registered is not None:
        yield from unregistered(files, registered)


def unregistered(files: Sequence[PythonFile], registered: frozenset[str]) -> Iterator[Located]:
    """Yield the calls of ops of the build that neither these files nor other sources can register."""
    known = registered | called_ops.named(python.text for python in files)
    for python in files:
        for called in called_ops.in_module(python.module) if "ops" in python.text else ():
            if called.name not in known:
                guess = nearest(called.name, registered)
                remedy = "register it, or correct the call" if guess is None else f"did you mean '{guess}'?"
                message, lines = f"nothing registers the op '{called.name}' that is called here", python.lines
                span = _span(called.call, lines)
                problem = Problem(code="B148", severity="error", message=message, span=span, help=remedy)
                yield locate(python.file, problem, lines)


def _python_files(package: Path, root: Path) -> Iterator[str]:
    """Yield a package's Python files; files outside of the project, behind a link, must not be shown."""
    tree = Tree.of(root)
    directory = package.absolute().relative_to(tree.root).as_posix()
    try:
        found = tree.walk(directory)
    except TooManyFilesError:  # the source set reports it
        return
    for path in sorted(found):
        if path.endswith(".py") and tree.is_file(path) and tree.contains(path):
            yield path.removeprefix(f"{directory}/")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # reported where it is read
        return 0


def judge(files: Sequence[PythonFile], *, prefix: str = PREFIXES[0]) -> Iterator[Located]:
    """Report registrations outside the namespace that `prefix` adds to a name."""
    named = {python.name: python for python in files}
    reader = NamespaceReader(scope_of=lambda name: named[name].module.scope if name in named else None)
    for python in files:
        # A file without registrations is parsed only if another file uses its names.
        lines = python.lines
        for call, scope in python.module.calls if python.may_register else ():
            problem = _judge(call, scope, reader, lines, prefix=prefix)
            if problem is not None:
                yield locate(python.file, problem, lines)


def _tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about string escapes in the file, such as '\d'
        return ast.parse(text)


def _read(path: Path, package: Path, file: str) -> PythonFile | Located:
    relative = path.relative_to(package.parent).with_suffix("")
    is_package = relative.name == "__init__"
    parts = relative.parts[:-1] if is_package else relative.parts
    python = PythonFile(file=file, name=".".join(parts), text="", package=is_package)
    try:
        if path.stat().st_size > _LARGEST:
            return _unreadable(file, f"it is larger than {_LARGEST >> 20} MiB")
        with tokenize.open(path) as stream:
            python = replace(python, text=stream.read())
        _ = python.module if python.may_register else _tree(python.text)
    except SyntaxError as error:
        column = max(error.offset or 1, 1)
        line = error.lineno
        span = Span(line=line, column=column, end_line=line, end_column=column + 1) if line else None
        return _unreadable(file, error.msg, span, python.lines)
    except (OSError, ValueError, LookupError, RecursionError, MemoryError) as error:
        return _unreadable(file, str(error) or type(error).__name__)
    return python


def _unreadable(file: str, reason: str, span: Span | None = None, lines: Sequence[str] = ()) -> Located:
    message = f"this Python file cannot be read: {reason}"
    remedy = "what it registers is not checked, and importing it will fail"
    return locate(file, Problem(code="B122", severity="warning", message=message, span=span, help=remedy), lines)


def _judge(
    call: ast.Call, scope: NameScope, reader: NamespaceReader, lines: Sequence[str], *, prefix: str
) -> Problem | None:
    used = _used(call, scope)
    namespace = Namespace.GENERATED if used is None else reader.judge(used[1], scope)
    if used is None or namespace is Namespace.GENERATED:
        return None
    function, name = used
    registers, span = f"{function} registers {_text(name, lines)}", _span(name, lines)
    if namespace is Namespace.OTHER:
        message, code = f"{registers} outside the namespace of this build", "B120"
    else:
        message, code = f"{registers}, whose namespace cannot be told here", "B121"
    severity: Severity = "warning" if namespace is Namespace.OTHER else "note"
    return Problem(code=code, severity=severity, message=message, span=span, help=_remedy(function, name, prefix))


def _used(call: ast.Call, scope: NameScope) -> tuple[str, ast.expr] | None:
    """Return torch.library's function in a call, with the expression that names the op; None for other calls."""
    function, arguments = _applied(call, scope)
    named = (keyword.value for keyword in call.keywords if keyword.arg in _KEYWORDS)
    name = arguments[0] if arguments and not isinstance(arguments[0], ast.Starred) else next(named, None)
    if name is None:
        return None
    short = (function or "").removeprefix("torch.library.")
    if function is not None and short != function and (short in _NAMED or short.startswith("register_")):
        return function, name
    # `lib.define` and `lib.impl`, if they name a namespace themselves; the library's own was judged already.
    whole = isinstance(name, ast.Constant) and isinstance(name.value, str) and "::" in name.value.split("(")[0]
    if whole and isinstance(call.func, ast.Attribute) and call.func.attr in {"define", "impl"}:
        library = call.func.value
        made = scope.lookup(library.id)[0] if isinstance(library, ast.Name) else [library]
        if any(isinstance(each, ast.Call) and is_library(qualified(each.func, scope)) for each in made):
            return f"Library.{call.func.attr}", name
    return None


def _applied(call: ast.Call, scope: NameScope) -> tuple[str | None, list[ast.expr]]:
    """Return the called function and its arguments, also through `functools.partial`."""
    inner = call.func
    if isinstance(inner, ast.Call) and qualified(inner.func, scope) == "functools.partial" and inner.args:
        return qualified(inner.args[0], scope), [*inner.args[1:], *call.args]
    function = qualified(inner, scope)
    if function == "functools.partial" and call.args:
        return qualified(call.args[0], scope), call.args[1:]
    return function, call.args


def _text(name: ast.expr, lines: Sequence[str]) -> str:
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


def _span(node: ast.expr, lines: Sequence[str]) -> Span:
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Span(
        line=node.lineno,
        column=_characters(lines[node.lineno - 1], node.col_offset) + 1,
        end_line=end_line,
        end_column=_characters(lines[end_line - 1], end) + 1,
    )


def _characters(line: str, offset: int) -> int:
    """Convert `ast`'s offset in UTF-8 bytes to characters."""
    return offset if line.isascii() else len(line.encode("utf-8")[:offset].decode("utf-8", "ignore"))
