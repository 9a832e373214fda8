"""The most that functions of device code may take: registers, spills, shared memory, and the least occupancy."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from builder.audit.report import Finding
from builder.audit.resources import Compiled
from builder.audit.subject import Subject
from builder.config.v5 import FunctionBudget

RULE = "functions"
_KEYS = ("max_registers", "no_spills", "max_shared_memory", "min_occupancy")
_LONGEST_GLOB = 1000
_LIMITED = re.compile(r"-?-maxrregcount[ =]([0-9]+)")
_NO_ROOM = "the GPU has no more registers for a thread: give each thread less to do, such as a smaller tile"


class _Limits(NamedTuple):
    """The limits that count for a function."""

    max_registers: int | None = None
    no_spills: bool | None = None
    max_shared_memory: int | None = None
    min_occupancy: int | None = None


def check(subject: Subject) -> Iterator[Finding]:
    """Yield a finding for each function that takes more than its kernel allows, and for limits that cannot be read."""
    budgets, found = subject.metadata.function_budgets, subject.resources
    file = f"{subject.module}/metadata.json"
    if budgets is None:
        why = "the limits of functions are none that this audit knows"
        remedy = "audit the wheel with the builder that made it, or a newer one"
        yield Finding(file, RULE, "require.functions", why, remedy)
    if not budgets or found is None:
        return
    for library, reason in found.unreadable.items():
        if library not in {refused.file for refused in subject.refused}:
            why = f"the kernel limits its functions, and they cannot be read: {reason}"
            yield Finding(library, RULE, library, why)
    for each in found.functions:
        yield from _judge(each, _limits(each, budgets))


def _limits(each: Compiled, budgets: tuple[FunctionBudget, ...]) -> _Limits:
    """Return the limits of a function: of each key the last one that names the function."""
    found: dict[str, int] = {}
    for budget in budgets:
        if _names(budget, each):
            found |= {key: value for key in _KEYS if (value := getattr(budget, key)) is not None}
    return _Limits(**found)  # type: ignore[arg-type]


def _names(budget: FunctionBudget, each: Compiled) -> bool:
    if budget.gpus and not any(name.gpu.arch in each.occupancy for name in budget.gpus):
        return False
    names = (each.source_name, each.source_name.removeprefix("void "), each.function.name)
    return any(fnmatchcase(name, glob[:_LONGEST_GLOB]) for glob in budget.names for name in names)


def _judge(each: Compiled, limits: _Limits) -> Iterator[Finding]:
    it = each.function
    if limits.no_spills and each.spills == "not known":
        own = "memory" if it.stack is None else f"{it.stack:,} bytes"
        why = f"for {each.arch} it may spill no registers; a thread has {own} of its own, and its ptxas, older than"
        why += " that of CUDA 12.6, does not tell what of it is spilled"
        remedy = "compile it with CUDA 12.6 or newer"
        yield Finding(each.library, RULE, each.source_name, why, remedy, severity="warning")
    elif limits.no_spills and each.spilled:
        why = f"for {each.arch} it spills registers, {each.spills}, and may spill none; it has {it.registers} registers"
        yield Finding(each.library, RULE, each.source_name, why, _cause(each))
    if limits.max_registers is not None and it.registers > limits.max_registers:
        why = f"for {each.arch} a thread takes {it.registers} registers, and may take {limits.max_registers}"
        remedy = (
            f"give each thread less to do, or limit it by __launch_bounds__, which may spill; {_raise('max-registers')}"
        )
        yield Finding(each.library, RULE, each.source_name, why, remedy)
    if limits.max_shared_memory is not None and it.shared > limits.max_shared_memory:
        most = f"{limits.max_shared_memory:,}"
        why = f"for {each.arch} a block takes {it.shared:,} bytes of shared memory, and may take {most}"
        remedy = f"make its tile smaller; {_raise('max-shared-memory')}"
        yield Finding(each.library, RULE, each.source_name, why, remedy)
    least = limits.min_occupancy or 0
    low = {gpu: percent for gpu, percent in each.occupancy.items() if percent < least}
    if low:
        gpu = min(low, key=lambda gpu: low[gpu])
        on = "" if each.arch.startswith(gpu) else f" on {gpu}"
        blocks = f"blocks of {it.threads} threads" if it.threads else "the best blocks"
        why = (
            f"for {each.arch} it keeps {low[gpu]} % of its waves running{on}, and must keep {least} %: "
            f"{it.registers} registers, {it.shared:,} bytes of shared memory, {blocks}"
        )
        remedy = f"give each thread less to do, or a block less shared memory; {_raise('min-occupancy', 'lower')}"
        yield Finding(each.library, RULE, each.source_name, why, remedy)


def _raise(key: str, how: str = "raise") -> str:
    return f"or {how} '{key}' in [require] of build.toml"


def _cause(each: Compiled) -> str:
    """Say what limits the registers of a function that spills, as far as its code tells, and what to do."""
    it = each.function
    if it.spilled is not None:
        return f"ask for less than its {it.threads} threads by __launch_bounds__, or give each thread less to do"
    option = _LIMITED.search(it.options or "")
    if it.limit is None:
        return _NO_ROOM
    if option is not None and int(option[1]) == it.limit:
        return f"'{option[0]}' of its ptxas allows {it.limit} registers: take it out of 'cuda-flags', or raise it"
    bounds = f"__launch_bounds__ of {it.threads} threads allows {it.limit} registers"
    if it.threads is None:
        return f"'-maxrregcount={it.limit}' allows it no more: take it out of 'cuda-flags', or raise it"
    return f"its {bounds}: ask for fewer threads, or fewer blocks at once"
