"""Choose the cells to build for tests, by the installed framework and this machine's GPUs."""

import contextlib
from dataclasses import dataclass, field, replace
from pathlib import Path

from builder import terminal
from builder.author import tests as kernel_tests
from builder.config import Backend
from builder.environment import locked_kernels
from builder.environment.download import Fetching
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.loadtest.packages import KernelFolder, depended
from builder.matrix import architectures, coverage
from builder.plan import choosing, dry_run
from builder.plan.ask import Ask, KernelBuild
from builder.toolchain import this_machine
from builder.toolchain.this_machine import CurrentPython


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRequest:
    """A request for tests of kernels against their wheels."""

    __test__ = False  # pytest must not collect this class

    ask: Ask
    """The cells, and how to build them; the tests use the framework and pytest of its Python."""
    arguments: tuple[str, ...]
    """The arguments of pytest."""
    needs_tests: bool = True
    """Whether a kernel without tests is refused."""
    _native: dict[Backend, tuple[str, ...]] = field(default_factory=dict)
    """The GPUs of this machine, which are looked up once."""
    _looked: list[CurrentPython] = field(default_factory=list)
    """The frameworks of the Python, which is examined once."""

    def prepare(self, kernel: Kernel) -> "TestBuild":
        """Choose the cells to build: the named ones, or the first one that the installed framework can run.

        Raises:
            BuilderError: there is no such cell, or the Python lacks something.
        """
        build = choosing.build_of(kernel, self.ask)
        if self.needs_tests:
            kernel_tests.tests_of(kernel.root)
        if not self._looked:
            self._looked.append(this_machine.installed_frameworks(self.ask.python))
        found = self._looked[0]
        kernel_tests.require(build.cells, found)
        build = replace(build, ask=replace(build.ask, python=found.python))
        if not self.ask.variants:
            order = kernel_tests.backends(build.cells[0].framework, found)
            build = replace(build, cells=(kernel_tests.choose(dry_run.preview(build), order).cell,))
        if self.ask.archs is None:
            build = replace(build, ask=build.ask.for_gpus(self._here(build)))
        return TestBuild(build=build, python=found.python, arguments=self.arguments)

    def _here(self, build: KernelBuild) -> tuple[str, ...]:
        """Return the GPUs of this machine if the cells are built only for these; empty for a full build.

        A full build in the store is used as it is. A machine without a GPU, or with a GPU that the kernel does not
        support, gives a full build.
        """
        if {(cell.backend in architectures.BACKENDS, cell.noarch) for cell in build.cells} != {(True, False)}:
            return ()
        if len({cell.backend for cell in build.cells}) > 1:
            return ()
        if all(plan.action == "hit" for plan in dry_run.preview(build)):
            return ()
        backend = build.cells[0].backend
        if backend not in self._native:
            self._native[backend] = ()
            with contextlib.suppress(BuilderError):
                self._native[backend] = this_machine.native_gpus((backend,), self.ask.environ).archs
        only = self._native[backend]
        try:
            for cell in build.cells:
                coverage.require(build.kernel.config, cell, only)
        except BuilderError:
            return ()
        return only


@dataclass(frozen=True, slots=True, kw_only=True)
class TestBuild:
    """The cells to build for tests."""

    __test__ = False

    build: KernelBuild
    python: Path
    """The interpreter that runs the tests."""
    arguments: tuple[str, ...]

    def into(self, output: Path) -> KernelBuild:
        """Return the build, with the folder for its wheels."""
        return replace(self.build, ask=replace(self.build.ask, output=output))

    def run(self) -> kernel_tests.TestRun:
        """Return the tests to run against the wheels of the cells.

        Raises:
            NoTestsError: the kernel has no tests.
        """
        kernel, cell, ask = self.build.kernel, self.build.cells[0], self.build.ask
        tests, kernels = kernel_tests.tests_of(kernel.root), tuple[KernelFolder, ...]()
        if depended(kernel, cell.backend):
            ask.store.prepare()
            fetching = Fetching(store=ask.store, environ=ask.environ, progress=terminal.err)
            kernels = locked_kernels.folders(kernel, cell, locked_kernels.keeper(fetching))
        return kernel_tests.TestRun(
            root=kernel.root,
            tests=tests,
            python=self.python,
            arguments=self.arguments,
            environ=ask.environ,
            kernels=kernels,
        )
