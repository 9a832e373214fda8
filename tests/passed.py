"""Leave out the tests that passed earlier in the same run of CI, on a bare machine.

    make test TEST_OPTIONS='-p tests.passed --passed-to=FILE'          writes down what passed, and where
    make test-all TEST_OPTIONS='-p tests.passed --passed-before=FILE'  leaves it out

A test runs again where it could end otherwise: all tests where a file of the checkout, the Python (but for its patch
release) or the version of a package is another one, and tests that compile or import torch also where the compiler is.
A test that was skipped or failed was not written down, so it runs. The head of the run says how many tests are left
out, or why none is.
"""

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
_COMPILING = frozenset({"cmake", "torch"})
"""The marks of tests that run the compilers of the machine."""
_OF_PYTHON = frozenset({"pip", "setuptools", "wheel"})
"""Packages that a virtual environment begins with: each Python brings its own."""
_AGAIN = "run again, though they passed before"


def pytest_addoption(parser):
    parser.addoption("--passed-to", metavar="FILE", type=Path, help="Write down the tests that pass.")
    parser.addoption("--passed-before", metavar="FILE", type=Path, help="Leave out the tests that this file names.")


def pytest_configure(config):
    file = config.getoption("--passed-to")
    if file is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(file))
    file = config.getoption("--passed-before")
    if file is not None:
        config.pluginmanager.register(Before.read(file))


class Recorder:
    """Writes the tests that pass to a file."""

    def __init__(self, file):
        self.file = file.absolute()
        self.file.unlink(missing_ok=True)
        self.facts = facts_of(ROOT)
        self.passed = set()
        self.others = set()

    def pytest_runtest_logreport(self, report):
        if not report.passed or hasattr(report, "wasxfail"):
            self.others.add(report.nodeid)
        elif report.when == "call":
            self.passed.add(report.nodeid)

    def pytest_sessionfinish(self):
        document = {**self.facts, "passed": sorted(self.passed - self.others)}
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


class Before:
    """Leaves out the tests that a file names, as far as they would end the same here."""

    def __init__(self, before, here):
        self.passed = frozenset(before["passed"])
        self.other = [name for name in ("files", "python") if before[name] != here[name]]
        # A patch release of Python decides whether some are needed: only those that are in both can be compared.
        versions = ((version, here["packages"].get(name, version)) for name, version in before["packages"].items())
        self.other += ["packages"] if any(one != other for one, other in versions) else []
        self.compiles_alike = before["compiler"] == here["compiler"]

    @classmethod
    def read(cls, file):
        """Read a file; one that is not there, or not whole, is an error: CI made it a moment ago."""
        return cls(json.loads(file.read_text(encoding="utf-8")), facts_of(ROOT))

    def pytest_report_header(self):
        if self.other:
            return f"{len(self.passed)} tests {_AGAIN}: other {', '.join(self.other)}"
        but = "" if self.compiles_alike else "; those that compile run again: another compiler"
        return f"up to {len(self.passed)} tests are left out, which passed before{but}"

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        left = [item for item in items if self._is_left_out(item)]
        if left:
            config.hook.pytest_deselected(items=left)
            items[:] = [item for item in items if not self._is_left_out(item)]

    def _is_left_out(self, item):
        if self.other or item.nodeid not in self.passed:
            return False
        return self.compiles_alike or not any(item.get_closest_marker(name) for name in _COMPILING)


def facts_of(root):
    """Return what decides how a test ends, besides the tools that it asks for itself."""
    packages = {each.name: each.version for each in importlib.metadata.distributions()}
    compiler = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=False)
    return {
        "files": digest_of(root),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "packages": {name: packages[name] for name in sorted(packages) if name not in _OF_PYTHON},
        "compiler": compiler.stdout.partition("\n")[0],
    }


def digest_of(root):
    """Return a digest of all files of a checkout that git does not ignore."""
    listing = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=root, capture_output=True, check=True).stdout.split(b"\0")
    digest = hashlib.sha256()
    for name in sorted({os.fsdecode(name) for name in names if name}):
        path = root / name
        if path.is_symlink():
            digest.update(f"{name}\0{path.readlink()}\0".encode())
        elif path.is_file():
            mode = "x" if os.access(path, os.X_OK) else "-"
            digest.update(f"{name}\0{mode}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\0".encode())
    return digest.hexdigest()
