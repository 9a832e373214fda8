"""Load an unpacked wheel in a fresh process, and check every op under its dispatch key.

An import alone proves nothing: a library built for another torch can be imported and silently register nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from builder.binary.extension import Extension
from builder.config import Framework
from builder.kernel import called_ops
from builder.loadtest import failures
from builder.loadtest.failures import asks_for_a_device, lacks_a_driver
from builder.loadtest.load_outcome import SKIPPED, LoadError, LoadState, LoadTest
from builder.loadtest.packages import LoadTestPackages
from builder.loadtest.packages import remedy as remedy_for
from builder.loadtest.process import ImportReport, LoadProcess, Question, Setup, ask, begun, keep_bytecode
from builder.wording import listed, nearest

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
    "described",
    "keep_bytecode",
    "load",
]

_KEEP = "'--load-test try' notes it and keeps the wheel"


def load(
    setup: Setup,
    *,
    ops: str,
    extensions: Mapping[str, str] | None = None,
    named: frozenset[str] | None = None,
    early: LoadProcess | None = None,
) -> LoadTest:
    """Load each library of a package by itself, import the package, and look its ops up, also those that it calls.

    `ops` is the op namespace of the wheel, and `extensions` has those of its extensions by their names. `named` are the
    ops that sources may register for some backend, as `called_ops.named` finds them; without it no call is refused.
    A process with the same setup may be there `early`, and have imported the framework already.
    """
    found = ask(setup, _question(setup, ops, extensions or {}), early=early)
    return _Import(setup=setup, ops=ops, extensions=extensions or {}, found=found, named=named).judged()


def described(
    setup: Setup, *, ops: str, extensions: Mapping[str, str], names: Mapping[str, str], before: Mapping[str, str]
) -> ImportReport:
    """Load a package and describe its ops, without judging it.

    `names` has a namespace that all builds share for each of its own, and `before` the schemas of another build.
    """
    return ask(setup, {**_question(setup, ops, extensions), "describe": dict(names), "before": dict(before)})


def check_imports(setup: Setup, *, ops: str, extensions: Mapping[str, str] | None = None) -> LoadTest | None:
    """Import a package's sources before its library exists; return a failure that compiling cannot repair.

    Only a missing, undeclared module counts: the library's stand-in may cause any other failure.
    """
    found = ask(setup, {**_question(setup, ops, extensions or {}), "stand-in": not setup.cell.noarch})
    if found.failure is None or found.failure["used-stand-in"]:
        return None
    judged = _Import(setup=setup, ops=ops, extensions=extensions or {}, found=found).judged()
    return judged if judged.outcome is LoadState.NOT_IMPORTABLE else None


def _question(setup: Setup, ops: str, extensions: Mapping[str, str]) -> Question:
    """Return the question about each library: namespace, file, generated module and exported functions."""
    module, libraries = setup.cell.framework.generated, []
    for extension, own in {"": ops, **extensions}.items():
        # The rest of the file name tells how the library uses Python.
        files = (setup.package / f"{own}.so", *sorted(setup.package.glob(f"{own}.*.so")))
        file = next((path for path in files if path.is_file()), None)
        exports: set[str] = set()
        if file is not None and setup.cell.framework is Framework.CTYPES:
            exports = {symbol.name for symbol in Extension.read(file.name, file.read_bytes()).defined}
        libraries.append(
            {
                "ops": own,
                "file": None if file is None else str(file),
                "module": f"{module}_{extension}" if extension else module,
                "exports": sorted(exports),
            }
        )
    return {"libraries": libraries, "key": setup.cell.backend.facts.dispatch_key, "stand-in": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Import:
    """The import of a package, and its result."""

    setup: Setup
    ops: str
    extensions: Mapping[str, str]
    """The op namespaces of extensions, by name."""
    found: ImportReport
    named: frozenset[str] | None = None
    """The ops that sources may register."""

    def judged(self) -> LoadTest:
        """Return the outcome, with the packages of the environment."""
        return replace(self._outcome(), packages=self.setup.packages.names)

    def _outcome(self) -> LoadTest:
        found, module = self.found, self.setup.package.name
        if found.died is not None:
            return self._broken(f"the built {module} does not load: {found.died}")
        if found.failure is None:
            return self._of_functions() if self.setup.cell.framework is Framework.CTYPES else self._of_ops()
        if found.library is not None and not lacks_a_driver(found.library):
            return self._of_library(found.library)
        chain = found.failure["chain"]
        for link in chain:  # the first exception that has an explanation, or else the last one raised
            if asks_for_a_device(link):
                return self._imported(f"{link['types'][0]}: {_first(link['text'])}")
            if link["missing"] is not None:
                return self._missing(str(link["missing"]))
        said = f"{chain[0]['types'][0]}: {_first(chain[0]['text'])}"
        return self._undefined(said) or self._raised(f"the built {module} does not load: {said}")

    def _broken(self, reason: str, help: str | None = None, details: str = "") -> LoadTest:
        return LoadTest(
            outcome=LoadState.BROKEN, ops=self.found.ops, reason=self._placeless(reason), details=details, help=help
        )

    def _imported(self, reason: str) -> LoadTest:
        return LoadTest(outcome=LoadState.IMPORTED, ops=self.found.ops, reason=self._placeless(reason))

    def _raised(self, reason: str) -> LoadTest:
        """Refuse a package with the last line of Python's message; the packages that raised it may be too new."""
        text = "" if self.found.failure is None else str(self.found.failure["text"])
        packages = failures.raised_in(text, self.setup.packages.folders)
        remedy = f"correct what the last line names; {_KEEP}"
        if packages:
            remedy = f"it is raised in {listed(packages)}: bound the one that does not fit in 'wheel.requires'; {_KEEP}"
        details = self._details()
        return self._broken(reason, remedy if details else None, details)

    def _undefined(self, said: str) -> LoadTest | None:
        """Refuse a package if the message says that its library uses an undefined symbol."""
        undefined = failures.explain(said)
        if undefined is None:
            return None
        missing, remedy = undefined
        return self._broken(f"the built {self.setup.package.name} does not load: {missing}", remedy)

    def _of_library(self, said: str) -> LoadTest:
        """Report the loader's message about the library, which the package's own message may replace."""
        if lacks_a_driver(said):
            return self._imported(said)
        reason = f"the built {self.setup.package.name} does not load: {_first(said)}"
        return self._undefined(said) or self._broken(reason, _KEEP)

    def _missing(self, module: str) -> LoadTest:
        """Distinguish an undeclared module from a declared one that is not installed here."""
        packages, ops = self.setup.packages, self.found.ops
        reason = ""
        if module in packages.absent:
            reason = f"the module '{module}' is not here: {packages.absent[module]}"
        elif packages.unmet:
            reason = f"the module '{module}' is not here, nor is a package that may have it: "
            reason += "; ".join(packages.unmet.values())
        if reason:
            return LoadTest(outcome=LoadState.NOT_TESTED, ops=ops, reason=reason, module=module)
        remedy = remedy_for(module, package=self.setup.package, backend=self.setup.cell.backend)
        return LoadTest(
            outcome=LoadState.NOT_IMPORTABLE,
            ops=ops,
            reason=f"{self.setup.package.name} cannot be imported: the module '{module}' is not declared",
            details=self._details(),
            help=f"{remedy}; {_KEEP}",
            module=module,
        )

    def _of_ops(self) -> LoadTest:
        """Judge an imported package by the registered ops of each library."""
        found = self.found
        if not self.setup.cell.noarch:
            if found.library is not None and (self.extensions or not found.ops):
                return self._of_library(found.library)
            tables = {"torch": self.ops, **{f"extension.{name}": ops for name, ops in self.extensions.items()}}
            for table, own in tables.items():
                refused = self._without_ops(table, own)
                if refused is not None:
                    return refused
        return self._of_calls() or LoadTest(outcome=LoadState.LOADED, ops=found.ops)

    def _of_calls(self) -> LoadTest | None:
        """Refuse a package that calls an op which the dispatcher does not have, and which no source names."""
        if self.named is None or self.setup.cell.framework is Framework.TVM_FFI:
            return None
        there = {name.partition(".")[0] for name in self.found.ops if "::" in name} | {*self.found.ops}
        for file, called in called_ops.in_package(self.setup.package):
            own = self.extensions.get(called.extension) if called.extension else self.ops
            if own is None or called.name in self.named or {f"{own}::{called.name}", f"{own}.{called.name}"} & there:
                continue  # an extension that the cell leaves out, an op of another backend, or one that is there
            known = [name.removeprefix(f"{own}::") for name in there if name.startswith(f"{own}::")]
            remedy = f"register it, or correct the call; the library has {listed(sorted(known))}"
            guess = nearest(called.name, known)
            place = f"{file}:{called.call.lineno}"
            return self._broken(
                f"{place} calls the op '{called.name}', which nothing registers",
                remedy if guess is None else f"did you mean '{guess}'?",
            )
        return None

    def _without_ops(self, table: str, own: str) -> LoadTest | None:
        """Refuse a library without an op, or without one that can be called; `own` is its namespace."""
        # A kernel with one library has no other ops; for tvm-ffi, the library is the only op.
        ops = {
            name: keys
            for name, keys in self.found.ops.items()
            if not self.extensions or name.startswith((f"{own}::", f"{own}."))
        }
        module, key = self.setup.package.name, self.setup.cell.backend.facts.dispatch_key
        if not ops:
            remedy = f"register the ops with TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) in a file of {table}.src"
            if self.setup.cell.python is not None:
                remedy += ", or define functions in PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)"
            return self._broken(f"the built {module} imports and registers no op in '{own}'", remedy)
        if any(ops.values()):
            return None
        return self._broken(
            f"no op of {module} has a kernel for {key}: {', '.join(sorted(ops))}",
            f"register them with TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, {key}, ops)",
        )

    def _of_functions(self) -> LoadTest:
        """Judge an imported package by the functions of its plain library."""
        found = self.found
        without = sorted(name for name, keys in found.ops.items() if not keys)
        if found.ops and not without:
            return LoadTest(outcome=LoadState.LOADED, ops=found.ops)
        if found.library is not None:
            return self._of_library(found.library)
        lacks = f"does not have {', '.join(without)}" if without else "exports no function"
        return self._broken(
            f"the library of {self.setup.package.name} is loaded and {lacks}",
            "name the functions that it has in 'exports' of [ctypes]",
        )

    def _placeless(self, text: str) -> str:
        """Remove the test's folders from a text, since they differ between machines."""
        for folder in (self.setup.package.parent, *self.setup.packages.folders):
            text = text.replace(f"{folder}/", "")
        return text

    def _details(self) -> str:
        """Return the end of Python's message about a failure, indented."""
        text = "" if self.found.failure is None else self._placeless(self.found.failure["text"])
        return "\n".join(f"    {line}" for line in text.rstrip().splitlines()[-15:])


def _first(text: str) -> str:
    return (text.strip().splitlines() or [""])[0]
