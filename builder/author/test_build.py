"""Choose the build that tests need: the cells that the installed framework can run, for the GPUs of this machine."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from builder import terminal
from builder.author import tests as kernel_tests
from builder.config import Backend
from builder.environment import locked_kernels
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

    __test__ = False  # not one of pytest's own

    ask: Ask
    """The cells and how they are built; its Python is the one whose framework and pytest are used."""
    arguments: tuple[str, ...]
    """The arguments of pytest."""
    needs_tests: bool = True
    """Whether a kernel without tests is refused."""
    _native: dict[Backend, tuple[str, ...]] = field(default_factory=dict)
    """The GPUs of this machine, which are asked for once."""
    _looked: list[CurrentPython] = field(default_factory=list)
    """The frameworks of the Python, which is looked at once."""

    def prepare(self, kernel: Kernel) -> "TestBuild":
        """Choose what is built: the cells that are named, or the first that the installed framework can run.

        Raises:
            BuilderError: there is none, or something is missing.
        """
        build = choosing.build_of(kernel, self.ask)
        if self.needs_tests:
            kernel_tests.tests_of(kernel.root)
        found = self._found()
        kernel_tests.require(build.cells, found)
        build = replace(build, ask=replace(build.ask, python=found.python))
        if not self.ask.variants:
            order = kernel_tests.backends(build.cells[0].framework, found)
            build = replace(build, cells=(kernel_tests.choose(dry_run.preview(build), order).cell,))
        if self.ask.archs is None:
            build = replace(build, ask=build.ask.for_gpus(self._here(build)))
        return TestBuild(build=build, found=found, request=self)

    def _found(self) -> CurrentPython:
        if not self._looked:
            self._looked.append(this_machine.installed_frameworks(self.ask.python))
        return self._looked[0]

    def _here(self, build: KernelBuild) -> tuple[str, ...]:
        """Return the GPUs of this machine, for which alone cells are built; none for a full build.

        What the store has is used as it is. A machine without a GPU, or with one that the kernel has no code for, says
        nothing about what to build.
        """
        if {(cell.backend in architectures.BACKENDS, cell.noarch) for cell in build.cells} != {(True, False)}:
            return ()
        if len({cell.backend for cell in build.cells}) > 1:
            return ()
        if all(plan.action == "hit" for plan in dry_run.preview(build)):
            return ()
        only = self._gpus(build.cells[0].backend)
        try:
            for cell in build.cells:
                coverage.require(build.kernel.config, cell, only)
        except BuilderError:
            return ()
        return only

    def _gpus(self, backend: Backend) -> tuple[str, ...]:
        if backend not in self._native:
            try:
                self._native[backend] = this_machine.native_gpus((backend,), self.ask.environ).archs
            except BuilderError:
                self._native[backend] = ()
        return self._native[backend]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestBuild:
    """The cells that are built for tests, and how."""

    __test__ = False

    build: KernelBuild
    found: CurrentPython
    request: TestRequest

    def into(self, output: Path) -> KernelBuild:
        """Return the build, whose wheels are written to a folder."""
        return replace(self.build, ask=replace(self.build.ask, output=output))

    def run(self) -> kernel_tests.TestRun:
        """Return the tests, for the wheels of the cells.

        Raises:
            NoTestsError: the kernel has none.
        """
        return kernel_tests.TestRun(
            root=self.build.kernel.root,
            tests=kernel_tests.tests_of(self.build.kernel.root),
            python=self.found.python,
            arguments=self.request.arguments,
            environ=self.request.ask.environ,
            kernels=self._kernels,
        )

    @property
    def _kernels(self) -> tuple[KernelFolder, ...]:
        """The locked kernels that the tested one depends on."""
        kernel, cell, ask = self.build.kernel, self.build.cells[0], self.build.ask
        if not depended(kernel, cell.backend):
            return ()
        ask.store.prepare()
        keeper = locked_kernels.keeper(ask.store, ask.environ, terminal.err)
        return locked_kernels.folders(kernel, cell, keeper)
