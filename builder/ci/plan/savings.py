"""What the stable ABI saves: wheels, and seconds of compilers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from builder.ci.plan import CiPlan, make
from builder.ci.plan.costs import Costs
from builder.config import Backend
from builder.matrix import Row
from builder.wording import columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Wheels and compile seconds of one backend, with the stable ABI and without."""

    backend: Backend
    wheels: int
    wheels_without: int
    seconds: float
    seconds_without: float


def savings(plan: CiPlan, among: Iterable[Row]) -> tuple[Saving, ...]:
    """Return what the stable ABI saves for each backend that the plan builds, in the order of `backends`."""
    kernel = plan.kernel
    torch = kernel.config.torch
    classic = kernel.config if torch is None else replace(kernel.config, torch=replace(torch, stable_abi=None))
    without = make(replace(kernel, config=classic), among, plan.scope)
    costs = Costs(kernel.config)
    found = []
    for backend in dict.fromkeys(kernel.config.general.backends):
        mine = [cell for cell in plan.cells if cell.backend is backend]
        theirs = [cell for cell in without.cells if cell.backend is backend]
        if theirs or mine:
            found.append(
                Saving(
                    backend=backend,
                    wheels=len(mine),
                    wheels_without=len(theirs),
                    seconds=sum(map(costs.compile_seconds, mine)),
                    seconds_without=sum(map(costs.compile_seconds, theirs)),
                )
            )
    return tuple(found)


def shown(plan: CiPlan, among: Iterable[Row]) -> str:
    """Return what the stable ABI saves, one backend on a line and the sum."""
    found = savings(plan, among)
    rows: list[tuple[str, ...]] = [("backend", "wheels", "without", "compile", "without", "saved")]
    rows += [_saving(saving.backend.value, saving) for saving in found]
    rows.append(_sum(found))
    note = "compile: estimated seconds of compilers, one after the other (builder/data/runners.toml)"
    return (
        "\n".join([f"{plan.kernel.config.general.name}: what the stable ABI saves", "", *columns(rows), "", note])
        + "\n"
    )


def of_one_library(plan: CiPlan, among: Iterable[Row]) -> str:
    """Return what one library for all Pythons would save where a plan has one for each; empty where it has not."""
    torch, cells = plan.kernel.config.torch, plan.cells
    if torch is None or not any(cell.python is not None for cell in cells):
        return ""
    usual = replace(plan.kernel.config, torch=replace(torch, python_abi=None))
    without = make(replace(plan.kernel, config=usual), among, plan.scope).cells
    cost = Costs(usual).compile_seconds
    wheels, seconds = len(cells) - len(without), sum(map(cost, cells)) - sum(map(cost, without))
    return (
        f"\none library for all Pythons would save {wheels} wheels and {seconds:.0f} s of compilers: "
        "it needs no 'torch.python-abi', and 'builder check' names the lines that stand in the way\n"
    )


def _saving(name: str, saving: Saving) -> tuple[str, ...]:
    return (
        name,
        str(saving.wheels),
        str(saving.wheels_without),
        f"{saving.seconds:.0f} s",
        f"{saving.seconds_without:.0f} s",
        f"{saving.wheels_without - saving.wheels} wheels, {saving.seconds_without - saving.seconds:.0f} s",
    )


def _sum(savings: Sequence[Saving]) -> tuple[str, ...]:
    wheels, without = sum(one.wheels for one in savings), sum(one.wheels_without for one in savings)
    seconds, slow = sum(one.seconds for one in savings), sum(one.seconds_without for one in savings)
    saved_ = f"{without - wheels} wheels, {slow - seconds:.0f} s"
    return ("total", str(wheels), str(without), f"{seconds:.0f} s", f"{slow:.0f} s", saved_)
