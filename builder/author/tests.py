"""Run a kernel's tests against its wheel, in a folder where its sources cannot be imported by mistake."""

import contextlib
import os
import re
import shlex
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from builder import json_text, loadtest, terminal
from builder import run as tools
from builder.config import Backend, Framework
from builder.errors import BuilderError, ToolError
from builder.loadtest.packages import KernelFolder, LoadTestPackages
from builder.make.framework import torch_identity
from builder.matrix import Cell
from builder.plan.dry_run import DryRun
from builder.toolchain.this_machine import CurrentPython
from builder.wheel.archive import Wheel

TESTS = "tests"
SETTINGS = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Files in which pytest looks for its settings."""
_RELEASED = "release"
_SHOWN = 20
"""The number of last lines that are shown if pytest did not finish."""
_NO_TESTS, _FAILED = 5, (1, 2)
"""Exit codes of pytest; 2 means that a test module cannot be imported."""
_PLUGIN = "_builder_kernel_client"
_LOCAL = "LOCAL_KERNELS"
"""The variable that tells the hub's client the folders of local kernels."""
_ORIGIN = "import importlib.util, sys; print(getattr(importlib.util.find_spec(sys.argv[1]), 'origin', None))"
_KINDS = ("failure", "error")
_COLLECTION = "collection failure"
_SAID = re.compile(r"^E +(.*)$", re.MULTILINE)
_PLACE = re.compile(r"^(\S+:\d+): ", re.MULTILINE)
"""A place and a message in pytest's text about a failed test."""


class NoTestsError(BuilderError):
    """A kernel without tests to run."""


class NoFittingCellError(ToolError):
    """The installed framework can test no cell of a kernel."""


def tests_of(root: Path) -> Path:
    """Return the folder of a kernel's tests.

    Raises:
        NoTestsError: the folder is missing or has no test.
    """
    folder = root / TESTS
    if not any(folder.rglob("test_*.py")) and not any(folder.rglob("*_test.py")):
        raise NoTestsError(f"no tests in '{folder}'", help="write one, such as tests/test_ops.py, that calls the ops")
    return folder


def require(cells: Iterable[Cell], found: CurrentPython) -> None:
    """Refuse an interpreter without pytest or the cells' framework, before anything is built.

    Raises:
        ToolError: something is missing; the message says what to install.
    """
    newest = max(cells, key=lambda cell: (cell.set == _RELEASED, cell.torch))
    of_tvm_ffi = newest.framework is Framework.TVM_FFI
    name, installed = ("tvm_ffi", found.tvm_ffi) if of_tvm_ffi else ("torch", found.torch)
    missing = {}
    if installed is None and newest.framework is not Framework.CTYPES:
        missing[name] = "apache-tvm-ffi" if of_tvm_ffi else f"torch=={newest.torch}.*"
    if found.pytest is None:
        missing["pytest"] = "pytest"
    if missing:
        command = shlex.join((str(found.python), "-m", "pip", "install", *missing.values()))
        raise ToolError(
            f"'{found.python}' has no {' and no '.join(missing)}",
            help=f"install what is missing, or name another Python with --python: {command}",
        )


def backends(framework: Framework, found: CurrentPython) -> tuple[Backend, ...]:
    """Return the backends that the installed framework can run: its GPU backend first, then cpu."""
    if framework in (Framework.TVM_FFI, Framework.CTYPES) or found.torch is None:
        return (Backend.CPU, Backend.CUDA)
    facts = torch_identity(found.torch).facts
    devices = tuple(backend for backend in Backend if backend.facts.torch_device in facts)
    return (*devices, Backend.METAL, Backend.CPU)


def choose(plans: Iterable[DryRun], order: Sequence[Backend]) -> DryRun:
    """Return the first cell that can be built, for the first backend that has such a cell.

    Raises:
        NoFittingCellError: no cell can be built; the message has the reason for each.
    """
    planned = tuple(plan for plan in plans if plan.cell.backend in order)
    possible = sorted(
        (plan for plan in planned if plan.action != "skip"), key=lambda plan: order.index(plan.cell.backend)
    )
    if possible:
        return possible[0]
    reasons = dict.fromkeys(plan.reason.splitlines()[0] for plan in planned)
    names = ", ".join(map(str, order))
    raise NoFittingCellError(
        "\n".join(("no cell fits the framework that is installed", *(f"  {reason}" for reason in reasons)))
        if reasons
        else f"the kernel has no cell for what is installed, which runs {names}",
        help="name another interpreter with --python, or install a torch of the matrix: builder matrix",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """The number of tests by result, and the message of the first failed test."""

    __test__ = False  # pytest must not collect this class

    passed: int
    failed: int = 0
    skipped: int = 0
    first: str | None = None

    @classmethod
    def read(cls, path: Path) -> "TestReport":
        """Read the JUnit XML of a finished run.

        Raises:
            ToolError: no report can be read.
        """
        try:
            suite = ET.parse(path).getroot().find("testsuite")  # noqa: S314  of the user's own pytest
        except (OSError, ET.ParseError) as error:
            raise ToolError(f"pytest left no report: {error}", help="leave out what turns its report off") from error
        cases = [] if suite is None else suite.findall("testcase")
        failed = [case for case in cases if any(case.find(kind) is not None for kind in _KINDS)]
        skipped = [case for case in cases if case.find("skipped") is not None]
        return cls(
            passed=len(cases) - len(failed) - len(skipped),
            failed=len(failed),
            skipped=len(skipped),
            first=_first_error(failed[0]) if failed else None,
        )

    def __str__(self) -> str:
        counts = {"failed": self.failed, "passed": self.passed, "skipped": self.skipped}
        return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "no test ran"


def _first_error(case: ET.Element) -> str:
    """Return the name of a test that failed, its message and the place."""
    found = next(each for kind in _KINDS if (each := case.find(kind)) is not None)
    text = found.text or ""
    places, said, message = _PLACE.findall(text), _SAID.search(text), found.get("message", "")
    if message == _COLLECTION and said is not None:  # this message tells nothing
        message = said[1]
    name = f"{case.get('classname', '')}::{case.get('name', '')}".removeprefix("::")
    return f"{name}: {message}" + (f"\n  --> {places[-1]}" if places else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """A run of a kernel's tests: interpreter, arguments and variables."""

    __test__ = False  # pytest must not collect this class

    root: Path
    tests: Path
    python: Path
    arguments: Sequence[str]
    environ: Mapping[str, str]
    kernels: tuple[KernelFolder, ...] = ()
    """The locked kernels that the tested kernel depends on."""


def run(wheel: Path, asked: TestRun) -> int:
    """Run the tests of a kernel against `wheel`.

    On a terminal, pytest writes directly, so that its debugger works; in a log, the tests' output is escaped.

    Returns:
        0 when all passed, 1 when some failed.

    Raises:
        NoTestsError: pytest found nothing to run.
        ToolError: pytest did not finish.
    """
    with _unpacked(wheel, asked) as (folder, env):
        command = [*_pytest(asked), *asked.arguments]
        if terminal.interactive():
            code = tools.foreground(command, cwd=folder, env=env)
        else:
            shown = tools.run(command, cwd=folder, env=env, on_line=lambda line: terminal.out(line, styled=True))
            code = shown.returncode
    return _judged(code, asked, help="what it wrote is above")


def run_quietly(wheel: Path, asked: TestRun, *, log: Path | None) -> TestReport:
    """Run the tests of a kernel against `wheel`, and write their output to a log.

    Raises:
        NoTestsError: pytest found nothing to run.
        ToolError: pytest did not finish.
    """
    with _unpacked(wheel, asked) as (folder, env):
        results = folder / "results.xml"
        command = [*_pytest(asked), f"--junitxml={results}", *asked.arguments]
        done = tools.run(command, cwd=folder, env=env, log=log)
        last = "\n".join(done.output.splitlines()[-_SHOWN:])
        _judged(done.returncode, asked, said=last, help="it says no more" if log is None else f"the log: {log}")
        return TestReport.read(results)


def _pytest(asked: TestRun) -> list[str]:
    plugin = ("-p", _PLUGIN) if asked.kernels else ()
    return [str(asked.python), "-m", "pytest", "-p", "no:cacheprovider", *plugin, TESTS]


def _judged(code: int, asked: TestRun, *, said: str = "", help: str) -> int:
    if code == _NO_TESTS:
        raise NoTestsError(
            f"pytest ran no test of '{asked.tests}'", help="look at the names and arguments given to pytest"
        )
    if code not in (0, *_FAILED):
        raise ToolError("\n".join(filter(None, (f"pytest ended with {code}", said))), help=help)
    return min(code, 1)


@contextlib.contextmanager
def _unpacked(wheel: Path, asked: TestRun) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """Yield a folder with the tests, and the variables with which the tests import the wheel."""
    with tempfile.TemporaryDirectory(prefix="builder-test-") as name:
        folder, site = Path(name), Path(name) / "site"
        env = installed(wheel, site, python=asked.python, environ=asked.environ, kernels=asked.kernels)
        shutil.copytree(asked.tests, folder / TESTS, ignore=shutil.ignore_patterns("__pycache__"))
        for each in SETTINGS:
            if (asked.root / each).is_file():
                shutil.copy(asked.root / each, folder / each)
        yield folder, env


def installed(
    wheel: Path, site: Path, *, python: Path, environ: Mapping[str, str], kernels: tuple[KernelFolder, ...] = ()
) -> Mapping[str, str]:
    """Unpack a wheel, and return the variables with which an interpreter imports it and the locked `kernels`.

    Raises:
        ToolError: an installed package would be imported instead.
    """
    packed = Wheel.read(wheel)  # its members have safe names
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    paths = os.pathsep.join((str(site), *filter(None, [environ.get("PYTHONPATH")])))
    # Bytecode is written: uv makes none for the framework, so each run would compile it anew.
    env = {**environ, "PYTHONPATH": paths}
    if kernels:
        env |= _give(kernels, site, environ=environ)
    # An editable install would shadow the wheel, unnoticed.
    module = packed.name.replace("-", "_")
    origin = tools.ask([str(python), "-c", _ORIGIN, module], cwd=site, env=env).stdout.strip()
    if not Path(origin).is_relative_to(site):
        raise ToolError(
            f"'{module}' would be imported from '{origin}', and not from the wheel",
            help=f"remove what is installed: {python} -m pip uninstall {module}",
        )
    return env


def _give(kernels: tuple[KernelFolder, ...], site: Path, *, environ: Mapping[str, str]) -> dict[str, str]:
    """Write the plugin by which a kernel finds its dependencies, and return the variable for the hub's client."""
    shutil.copyfile(Path(loadtest.__file__).with_name("kernel_client.py"), site / f"{_PLUGIN}.py")
    tree = LoadTestPackages(locked=kernels).kernel_tree
    (site / f"{_PLUGIN}.json").write_text(json_text.line(tree), encoding="utf-8")
    named = {kernel.repo_id: str(kernel.folder) for each in kernels for kernel in each.all()}
    places = (f"{repository}={folder}" for repository, folder in named.items())
    return {_LOCAL: ":".join((*places, *filter(None, [environ.get(_LOCAL)])))}
