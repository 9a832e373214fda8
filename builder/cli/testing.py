"""What `builder test` and `builder watch` build, and how their tests are run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from builder import terminal
from builder.author import tests as kernel_tests
from builder.cli.arguments import archs_option, cache_options, load_test_option, python_option, store_option
from builder.cli.selecting import variants_option
from builder.compile_cache import CacheOptions
from builder.config import Backend, LoadTestRule
from builder.environment import locked_kernels
from builder.errors import BuilderError
from builder.kernel import Kernel
from builder.loadtest.packages import KernelFolder, depended
from builder.matrix import SETS, coverage, quick
from builder.matrix.quick import TargetGpus
from builder.matrix.selection import Scope
from builder.plan import choosing, dry_run
from builder.plan.ask import Ask, KernelBuild
from builder.store import Store
from builder.toolchain import this_machine
from builder.toolchain.this_machine import CurrentPython
from builder.wheel.options import BuildOptions

_REST = "rest"


class PytestCommand(click.Command):
    """A command that leaves what stands behind `--` to pytest."""

    rest = "[-- PYTEST_ARGUMENTS]"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what stands behind `--` aside."""
        end = args.index("--") if "--" in args else len(args)
        ctx.meta[_REST] = args[end + 1 :]
        return super().parse_args(ctx, args[:end])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Say that there may be some."""
        return [*super().collect_usage_pieces(ctx), self.rest]


def rest(ctx: click.Context) -> tuple[str, ...]:
    """Return what stands behind `--`."""
    return tuple(ctx.meta[_REST])


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what is tested."""
    added = (
        variants_option("Cell to test"),
        python_option("Python whose torch and pytest are used."),
        archs_option("Build only for these GPUs. Default: those of this machine, where there are any."),
        load_test_option,
        cache_options,
        store_option,
    )
    for each in reversed(added):
        command = each(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRequest:
    """What a user asked of tests."""

    __test__ = False  # not one of pytest's own

    variants: tuple[str, ...]
    python: Path | None
    archs: TargetGpus | str | None
    load_test: LoadTestRule | None
    cache: CacheOptions | None
    store: Path
    environ: Mapping[str, str]
    arguments: tuple[str, ...]
    """Those of pytest."""
    needs_tests: bool = True
    """Whether a kernel without tests is refused."""
    _native: dict[Backend, tuple[str, ...]] = field(default_factory=dict)
    """The GPUs of this machine, which are asked for once."""
    _looked: list[CurrentPython] = field(default_factory=list)
    """What the Python has, which is looked at once."""

    @classmethod
    def of(cls, ctx: click.Context, environ: Mapping[str, str], **given: Any) -> "TestRequest":
        """Return what a command line says."""
        return cls(environ=environ, arguments=rest(ctx), **given)

    def prepare(self, kernel: Kernel) -> "TestBuild":
        """Choose what is built: the cells that are named, or the first that the installed framework can run.

        Raises:
            BuilderError: there is none, or something is missing.
        """
        ask = Ask(
            scope=Scope(sets=SETS, unbundled=True),
            variants=self.variants,
            archs=self.archs,
            store=Store(self.store),
            environ=dict(self.environ),
            isolation=False,
            options=BuildOptions(load_test=self.load_test),
            cache=self.cache,
        )
        build = choosing.build_of(kernel, ask)
        if self.needs_tests:
            kernel_tests.tests_of(kernel.root)
        found = self._found()
        kernel_tests.require(build.cells, found)
        build = replace(build, ask=replace(build.ask, python=found.python))
        if not self.variants:
            order = kernel_tests.backends(build.cells[0].framework, found)
            build = replace(build, cells=(kernel_tests.choose(dry_run.preview(build), order).cell,))
        if self.archs is None:
            build = replace(build, ask=build.ask.for_gpus(self._here(build)))
        return TestBuild(build=build, found=found, request=self)

    def _found(self) -> CurrentPython:
        if not self._looked:
            self._looked.append(this_machine.installed_frameworks(self.python))
        return self._looked[0]

    def _here(self, build: KernelBuild) -> tuple[str, ...]:
        """Return the GPUs of this machine, for which alone cells are built; none for a full build.

        What the store has is used as it is. A machine without a GPU, or with one that the kernel has no code for, says
        nothing about what to build.
        """
        if {(cell.backend in quick.BACKENDS, cell.noarch) for cell in build.cells} != {(True, False)}:
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
                self._native[backend] = this_machine.native_gpus((backend,), self.environ).archs
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
            environ=self.request.environ,
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
