"""Find what a load test needs in addition to the build's environment: packages, and the kernel's dependencies."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builder import pins
from builder.config import LoadTestRule
from builder.environment import indexes
from builder.errors import BuilderError, NotHereError, ToolError
from builder.kernel import Kernel
from builder.loadtest.packages import KernelFolder, depended, module_of, parts, wanted
from builder.make.job import NotLoadable, Spec, loader_of
from builder.matrix import Cell
from builder.plan.ask import Ask
from builder.run import Processes
from builder.wheel import kernel_wheel
from builder.wheel.archive import WheelError


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTestNeeds:
    """The packages and kernels for load tests; if a test may fail, missing ones are skipped."""

    kernel: Kernel
    ask: Ask
    rule: LoadTestRule
    known: pins.Pins
    step: Callable[[Cell, str], None]
    processes: Processes

    def packages(self, spec: Spec, base: pins.PinSet, requirement: pins.Requirement) -> pins.PinSet | None:
        """Return the additional wheels for the load test; None if there are none.

        Args:
            spec: The build.
            base: The wheels of the build's own environment.
            requirement: The requirement that this environment meets.

        Raises:
            ToolError: the wheel's requirements cannot be resolved.
        """
        if self.rule is LoadTestRule.SKIP or isinstance(loader_of(spec, self.ask.environ), NotLoadable):
            return None
        names = wanted(self.kernel, spec.cell)
        declared = self.known.additional(parts(names), requirement, base=base)
        found = self._with_required(spec.cell, base, declared)
        return found if found.wheels else None

    def lacking(self, cell: Cell, error: NotHereError) -> NotHereError:
        """Return the error about missing packages, with their purpose."""
        names = (*wanted(self.kernel, cell), *self.kernel.config.wheel.requires)
        return NotHereError(
            f"the load test needs {', '.join(names)}: {error.message}",
            help=f"{error.help}; or build without the load test, with '--load-test skip'",
        )

    def kernels(self, cell: Cell) -> tuple[Mapping[str, Path], tuple[KernelFolder, ...]]:
        """Return the wheels of the kernel's dependencies, and the kernels in its lock.

        Raises:
            BuilderError: one is not available, or does not have the locked hash.
        """
        if self.rule is LoadTestRule.SKIP or not depended(self.kernel, cell.backend):
            return {}, ()
        modules = {repository: module_of(repository) for repository in depended(self.kernel, cell.backend)}
        found = {name: next(_wheels(module, cell, self.ask), None) for name, module in modules.items()}
        return {name: path for name, path in found.items() if path is not None}, self._locked(cell)

    def _with_required(self, cell: Cell, base: pins.PinSet, declared: pins.PinSet) -> pins.PinSet:
        """Add the requirements in [wheel]."""
        requires = self.kernel.config.wheel.requires
        if not requires:
            return declared
        from builder.environment import resolve  # noqa: PLC0415  few kernels need it

        try:
            env = indexes.read(self.ask.environ).env
            found = resolve.wheels_of(requires, base=base, store=self.ask.store, env=env, processes=self.processes)
        except ToolError as error:
            self._go_on_after(error, cell)
            return declared
        wheels = {wheel.name: wheel for wheel in (*found, *declared.wheels)}
        return replace(declared, wheels=tuple(wheels[name] for name in sorted(wheels)))

    def _locked(self, cell: Cell) -> tuple[KernelFolder, ...]:
        """Fetch the locked kernels that the store lacks, and verify all."""
        from builder.environment import download, locked_kernels  # noqa: PLC0415  few kernels need it

        fetching = download.Fetching(
            store=self.ask.store,
            environ=self.ask.environ,
            progress=lambda text: self.step(cell, text),
            processes=self.processes,
        )
        try:
            return locked_kernels.folders(self.kernel, cell, locked_kernels.keeper(fetching))
        except BuilderError as error:
            self._go_on_after(error, cell)
            return ()

    def _go_on_after(self, error: BuilderError, cell: Cell) -> None:
        """Report the error if the load test may fail; otherwise raise it."""
        if self.rule is not LoadTestRule.TRY:
            raise error
        self.step(cell, error.message.splitlines()[0])


def names(kernel: Kernel, cell: Cell) -> tuple[tuple[str, str], ...]:
    """Return module and variant of each wheel that the load test of `cell` looks for."""
    modules = map(module_of, depended(kernel, cell.backend))
    return tuple((module, variant) for module in modules for variant in _variants(cell))


def in_order(found: Sequence[Kernel]) -> tuple[int, ...]:
    """Return the order of kernels, dependencies first; a circle is cut at some kernel."""
    modules = {kernel.config.general.name.module: number for number, kernel in enumerate(found)}
    order: dict[int, None] = {}
    visited: set[int] = set()

    def visit(number: int) -> None:
        if number in visited:
            return
        visited.add(number)
        config = found[number].config
        for backend in dict.fromkeys(config.general.backends):
            for repository in depended(found[number], backend):
                if module_of(repository) in modules:
                    visit(modules[module_of(repository)])
        order[number] = None

    for number in range(len(found)):
        visit(number)
    return tuple(order)


def _variants(cell: Cell) -> tuple[str, ...]:
    return tuple(dict.fromkeys((cell.variant, cell.backend.facts.noarch_variant)))


def _wheels(module: str, cell: Cell, ask: Ask) -> Iterator[Path]:
    """Yield wheels of a kernel that fit a user of `cell`, beginning with the output folder."""
    variants = _variants(cell)
    for folder in (ask.output, *sorted((ask.store.root / "wheels").glob("[!.]*"))):
        for path in sorted(folder.glob(f"{module}-*.whl")):
            try:
                found = kernel_wheel.read(path)
            except WheelError:
                continue  # from another tool, or incomplete
            if found.module == module and str(found.variant) in variants:
                yield path
