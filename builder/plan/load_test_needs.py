"""What the load test of a cell is given besides the environment of the build: packages, and kernels it depends on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from builder import pins
from builder.config import LoadTestRule
from builder.environment import indexes
from builder.errors import BuilderError, NotHereError, ToolError
from builder.kernel import Kernel
from builder.loadtest.packages import KernelFolder, depended, parts, wanted
from builder.make.job import NotLoadable, loader_of
from builder.make.spec import Spec
from builder.matrix import Cell
from builder.plan.ask import Ask
from builder.run import Processes


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTestNeeds:
    """What the load tests of a kernel need; a test that may fail goes on without what cannot be had."""

    kernel: Kernel
    ask: Ask
    rule: LoadTestRule
    known: pins.Pins
    step: Callable[[Cell, str], None]
    processes: Processes

    def packages(self, spec: Spec, base: pins.PinSet, requirement: pins.Requirement) -> pins.PinSet | None:
        """Return the wheels that are needed beside those of the build; None where there are none.

        Args:
            spec: What is built.
            base: The wheels of the build's own environment.
            requirement: What that environment is for.

        Raises:
            ToolError: what the wheel will require cannot be resolved.
        """
        if self.rule is LoadTestRule.SKIP or isinstance(loader_of(spec, self.ask.environ), NotLoadable):
            return None
        names = wanted(self.kernel, spec.cell)
        declared = self.known.additional(parts(names), requirement, base=base)
        found = self._with_required(spec.cell, base, declared)
        return found if found.wheels else None

    def lacking(self, cell: Cell, error: NotHereError) -> NotHereError:
        """Return the error of packages that cannot be had, with what they are for."""
        names = (*wanted(self.kernel, cell), *self.kernel.config.requires)
        return NotHereError(
            f"the load test needs {', '.join(names)}: {error.message}",
            help=f"{error.help}; or build without the load test, with '--load-test skip'",
        )

    def kernels(self, cell: Cell) -> tuple[Mapping[str, Path], tuple[KernelFolder, ...]]:
        """Return the wheels of kernels that this one depends on, and those that its lock names.

        Raises:
            BuilderError: one cannot be had, or is not what the lock says.
        """
        if self.rule is LoadTestRule.SKIP or not depended(self.kernel, cell.backend):
            return {}, ()
        from builder.plan import kernel_depends  # noqa: PLC0415  reads wheels, which few kernels need

        wheels = kernel_depends.kernels(self.kernel, cell, store=self.ask.store, output=self.ask.output)
        return wheels, self._locked(cell)

    def _with_required(self, cell: Cell, base: pins.PinSet, declared: pins.PinSet) -> pins.PinSet:
        """Add what [wheel] requires."""
        requires = self.kernel.config.requires
        if not requires:
            return declared
        from builder.environment import resolve  # noqa: PLC0415  few kernels need it

        try:
            found = resolve.wheels_of(requires, base=base, store=self.ask.store, env=indexes.read(self.ask.environ).env)
        except ToolError as error:
            self._go_on_after(error, cell)
            return declared
        wheels = {wheel.name: wheel for wheel in (*found, *declared.wheels)}
        return replace(declared, wheels=tuple(wheels[name] for name in sorted(wheels)))

    def _locked(self, cell: Cell) -> tuple[KernelFolder, ...]:
        """Fetch the kernels of the lock that are not there, and verify all."""
        from builder.environment import locked_kernels  # noqa: PLC0415  few kernels need it

        ask = self.ask
        keeper = locked_kernels.keeper(
            ask.store, ask.environ, lambda text: self.step(cell, text), processes=self.processes
        )
        try:
            return locked_kernels.folders(self.kernel, cell, keeper)
        except BuilderError as error:
            self._go_on_after(error, cell)
            return ()

    def _go_on_after(self, error: BuilderError, cell: Cell) -> None:
        """Tell an error of a test that may fail, and raise that of any other."""
        if self.rule is not LoadTestRule.TRY:
            raise error
        self.step(cell, error.message.splitlines()[0])
