"""Load an unpacked wheel in a fresh process and look every op up under its dispatch key.

An import alone proves nothing: a library built for another torch can be imported and silently register nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from builder.binary.extension import Extension
from builder.config import Framework
from builder.loadtest import failures
from builder.loadtest.failures import asks_for_a_device, lacks_a_driver
from builder.loadtest.outcome import SKIPPED, LoadError, LoadState, LoadTest
from builder.loadtest.packages import LoadTestPackages
from builder.loadtest.packages import remedy as remedy_for
from builder.loadtest.process import Found, LoadedLibrary, LoadProcess, Question, Setup, ask, begun, keep_bytecode
from builder.wording import listed

__all__ = [
    "SKIPPED",
    "LoadError",
    "LoadProcess",
    "LoadState",
    "LoadTest",
    "LoadTestPackages",
    "Setup",
    "begun",
    "check_imports",
    "keep_bytecode",
    "load",
]

_KEEP = "'--load-test try' notes it and keeps the wheel"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    setup: Setup
    ops: str
    extensions: Mapping[str, str] = field(default_factory=dict)
    """The op namespaces of extensions, by their names."""

    @property
    def package(self) -> Path:
        return self.setup.package

    @property
    def key(self) -> str:
        return self.setup.cell.backend.facts.dispatch_key

    @property
    def plain(self) -> bool:
        """Whether the library registers nothing."""
        return self.setup.cell.framework is Framework.CTYPES

    def question(self, *, stand_in: bool = False) -> Question:
        libraries = [self._library(self.ops, self.setup.cell.framework.generated)]
        for extension, ops in self.extensions.items():
            libraries.append(self._library(ops, f"{self.setup.cell.framework.generated}_{extension}"))
        return Question(libraries=tuple(libraries), key=self.key, stand_in=stand_in)

    def _library(self, ops: str, module: str) -> LoadedLibrary:
        """Find the library of a namespace; the rest of its name says what it uses of Python."""
        files = (self.package / f"{ops}.so", *sorted(self.package.glob(f"{ops}.*.so")))
        file = next((path for path in files if path.is_file()), None)
        exports: set[str] = set()
        if file is not None and self.plain:
            exports = {symbol.name for symbol in Extension.read(file.name, file.read_bytes()).defined}
        return LoadedLibrary(ops=ops, file=file, module=module, exports=tuple(sorted(exports)))


def load(
    setup: Setup, *, ops: str, extensions: Mapping[str, str] | None = None, early: LoadProcess | None = None
) -> LoadTest:
    """Load each library of a package by itself, import the package, and look its ops up.

    Args:
        setup: The package, and what its process has.
        ops: The op namespace of the wheel.
        extensions: Those of its extensions, by their names.
        early: A process with the same setup that has imported the framework already.
    """
    asked = _Asked(setup=setup, ops=ops, extensions=extensions or {})
    return _judge(asked, ask(setup, asked.question(), early=early)).with_packages(asked.setup.packages.names)


def check_imports(setup: Setup, *, ops: str, extensions: Mapping[str, str] | None = None) -> LoadTest | None:
    """Import the sources of a package before its library exists; return a failure that compiling will not repair.

    Only a missing, undeclared module counts: the stand-in for the library may be the cause of anything else.
    """
    asked = _Asked(setup=setup, ops=ops, extensions=extensions or {})
    found = ask(setup, asked.question(stand_in=not setup.cell.noarch))
    if found.failure is None or found.failure["used-stand-in"]:
        return None
    judged = _judge(asked, found)
    return judged.with_packages(asked.setup.packages.names) if judged.outcome is LoadState.NOT_IMPORTABLE else None


def _judge(asked: _Asked, found: Found) -> LoadTest:
    if found.died is not None:
        return _broken(asked, found, f"the built {asked.package.name} does not load: {found.died}")
    if found.failure is None:
        return _judge_ops(asked, found)
    if found.library is not None and not lacks_a_driver(found.library):
        return _judge_library(asked, found, found.library)
    chain = found.failure["chain"]
    for link in chain:  # the first exception that says enough, or else the last one that was raised
        if asks_for_a_device(link):
            reason = f"{link['types'][0]}: {_first(link['text'])}"
            return LoadTest(outcome=LoadState.IMPORTED, ops=found.ops, reason=_placeless(asked, reason))
        if link["missing"] is not None:
            return _judge_missing(asked, found, str(link["missing"]))
    said = f"{chain[0]['types'][0]}: {_first(chain[0]['text'])}"
    return _undefined(asked, found, said) or _broken(
        asked, found, f"the built {asked.package.name} does not load: {said}"
    )


def _broken(asked: _Asked, found: Found, reason: str) -> LoadTest:
    """Refuse a package with the end of Python's message; packages in which it was raised may be too new."""
    text = "" if found.failure is None else str(found.failure["text"])
    packages = failures.raised_in(text, asked.setup.packages.folders)
    remedy = f"correct what the last line names; {_KEEP}"
    if packages:
        remedy = f"it is raised in {listed(packages)}: bound the one that does not fit in 'wheel.requires'; {_KEEP}"
    details = _details(asked, found)
    return LoadTest(
        outcome=LoadState.BROKEN,
        ops=found.ops,
        reason=_placeless(asked, reason),
        details=details,
        help=remedy if details else None,
    )


def _undefined(asked: _Asked, found: Found, said: str) -> LoadTest | None:
    """Refuse a package whose library has a symbol that nothing defines, if the message says that."""
    undefined = failures.explain(said)
    if undefined is None:
        return None
    reason = f"the built {asked.package.name} does not load: {undefined.text}"
    return LoadTest(outcome=LoadState.BROKEN, ops=found.ops, reason=reason, help=undefined.help)


def _judge_library(asked: _Asked, found: Found, said: str) -> LoadTest:
    """Report the loader's message about the library, which the package's own message may hide."""
    if lacks_a_driver(said):
        return LoadTest(outcome=LoadState.IMPORTED, ops=found.ops, reason=_placeless(asked, said))
    reason = _placeless(asked, f"the built {asked.package.name} does not load: {_first(said)}")
    return _undefined(asked, found, said) or LoadTest(
        outcome=LoadState.BROKEN, ops=found.ops, reason=reason, help=_KEEP
    )


def _judge_missing(asked: _Asked, found: Found, missing: str) -> LoadTest:
    """Tell an undeclared module from a declared one that is not installed here."""
    packages = asked.setup.packages
    reason = ""
    if missing in packages.absent:
        reason = f"the module '{missing}' is not here: {packages.absent[missing]}"
    elif packages.unmet:
        reason = f"the module '{missing}' is not here, nor is a package that may have it: "
        reason += "; ".join(packages.unmet.values())
    if reason:
        return LoadTest(outcome=LoadState.NOT_TESTED, ops=found.ops, reason=reason, module=missing)
    remedy = remedy_for(missing, package=asked.package, backend=asked.setup.cell.backend)
    return LoadTest(
        outcome=LoadState.NOT_IMPORTABLE,
        ops=found.ops,
        reason=f"{asked.package.name} cannot be imported: the module '{missing}' is not declared",
        details=_details(asked, found),
        help=f"{remedy}; {_KEEP}",
        module=missing,
    )


def _judge_ops(asked: _Asked, found: Found) -> LoadTest:
    """Judge a package that was imported by the ops that are there."""
    if asked.plain:
        return _judge_functions(asked, found)
    if not asked.setup.cell.noarch:
        if found.library is not None and (asked.extensions or not found.ops):
            return _judge_library(asked, found, found.library)
        tables = {"torch": asked.ops, **{f"extension.{name}": ops for name, ops in asked.extensions.items()}}
        for table, own in tables.items():
            refused = _judge_library_ops(asked, found, table, own)
            if refused is not None:
                return refused
    return LoadTest(outcome=LoadState.LOADED, ops=found.ops)


def _judge_library_ops(asked: _Asked, found: Found, table: str, own: str) -> LoadTest | None:
    """Refuse a library that has no op, or none that can be called; `own` is its namespace."""
    # A kernel of one library has no others: that of tvm-ffi is its only op.
    ops = {
        name: keys
        for name, keys in found.ops.items()
        if not asked.extensions or name.startswith((f"{own}::", f"{own}."))
    }
    module = asked.package.name
    if not ops:
        remedy = f"register the ops with TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) in a file of {table}.src"
        if asked.setup.cell.python is not None:
            remedy += ", or define functions in PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)"
        return LoadTest(
            outcome=LoadState.BROKEN,
            ops=found.ops,
            reason=f"the built {module} imports and registers no op in '{own}'",
            help=remedy,
        )
    without = sorted(name for name, keys in ops.items() if not keys)
    if len(without) < len(ops):
        return None
    return LoadTest(
        outcome=LoadState.BROKEN,
        ops=found.ops,
        reason=f"no op of {module} has a kernel for {asked.key}: {', '.join(without)}",
        help=f"register them with TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, {asked.key}, ops)",
    )


def _judge_functions(asked: _Asked, found: Found) -> LoadTest:
    """Judge a package that was imported by the functions of its plain library."""
    without = sorted(name for name, keys in found.ops.items() if not keys)
    if found.ops and not without:
        return LoadTest(outcome=LoadState.LOADED, ops=found.ops)
    if found.library is not None:
        return _judge_library(asked, found, found.library)
    lacks = f"does not have {', '.join(without)}" if without else "exports no function"
    return LoadTest(
        outcome=LoadState.BROKEN,
        ops=found.ops,
        reason=f"the library of {asked.package.name} is loaded and {lacks}",
        help="name the functions that it has in 'exports' of [ctypes]",
    )


def _placeless(asked: _Asked, text: str) -> str:
    """Leave the folders of the test out of a text: they differ from one machine to the next."""
    for folder in (asked.package.parent, *asked.setup.packages.folders):
        text = text.replace(f"{folder}/", "")
    return text


def _first(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]


def _details(asked: _Asked, found: Found) -> str:
    """Return the end of what Python said of a failure, indented."""
    text = "" if found.failure is None else _placeless(asked, found.failure["text"])
    return "\n".join(f"    {line}" for line in text.rstrip().splitlines()[-15:])
