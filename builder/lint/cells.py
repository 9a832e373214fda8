"""Find settings that no cell of the build matrix serves: bounds, conditions, backends, architectures, required GPUs."""

from collections import Counter
from collections.abc import Iterator, Sequence

from builder.config import Backend, Version
from builder.config.gpus import code_of
from builder.config.source_tables import CudaComponent, RocmComponent
from builder.config.text import KeyPath
from builder.errors import Problem
from builder.kernel import Kernel
from builder.matrix import Decision, architectures, coverage, decide, rows, select, sets_with_cells, without_rows
from builder.matrix.rules import Unmet, unmet, unmet_of_extension
from builder.wording import listed, nearest

_RELEASE = "release"


def bounds(kernel: Kernel) -> Iterator[Problem]:
    """Report bounds that exclude everything, and conditions that hold in no cell."""
    config, problem = kernel.config, kernel.source.problem
    tables = {("torch",): config.torch, ("general", "cuda"): config.general.cuda}
    for path, table in tables.items():
        low, high = getattr(table, "minver", None), getattr(table, "maxver", None)
        if low is not None and high is not None and high < low:
            message = f"'minver' {low} is above 'maxver' {high}"
            remedy = "both bounds are inclusive: exchange them, or remove one"
            yield problem("B106", message, path=(*path, "minver"), severity="warning", help=remedy)
    yield from _stable_abi(kernel)
    toolkits = [Version(row.toolkit) for row in rows() if row.backend is Backend.CUDA and row.toolkit is not None]
    for name, component in config.components(Backend.CUDA).items():
        minver = getattr(component, "cuda_minver", None)
        if minver is not None and all(toolkit < minver for toolkit in toolkits):
            message = f"'cuda-minver' {minver} is above every CUDA of the build matrix: no cell has the component"
            remedy = f"the newest is {max(toolkits)}"
            yield problem("B123", message, path=("kernel", name, "cuda-minver"), severity="warning", help=remedy)
    for extension in config.extension:
        among = [row for row in rows() if extension in config.extensions(row.backend)]
        reasons = [unmet_of_extension(config, extension, row.backend, row) for row in among]
        yield from _never_holds(kernel, ("extension", extension), "extension", reasons, "no wheel has it")
    for name, part in config.kernel.items():
        reasons = [unmet(part, row) for row in rows() if row.backend is part.backend]
        yield from _never_holds(kernel, ("kernel", name), "component", reasons, "no cell has the component")


def _never_holds(
    kernel: Kernel, table: tuple[str, str], what: str, reasons: Sequence[Unmet | None], effect: str
) -> Iterator[Problem]:
    """Report a condition that holds in no row."""
    if reasons and (last := reasons[-1]) is not None and None not in reasons:
        message = f"the 'when' of {what} '{table[1]}' holds in no row of the build matrix: {effect}"
        remedy = f"for one row, {last.message}"
        yield kernel.source.problem("B131", message, path=(*table, "when"), severity="warning", help=remedy)


def _stable_abi(kernel: Kernel) -> Iterator[Problem]:
    torch = kernel.config.torch
    path: KeyPath = ("torch", "stable-abi")
    if torch is None or torch.stable_abi is None:
        return
    if isinstance(torch.stable_abi, Version):
        named = {path: torch.stable_abi}
    else:
        named = {(*path, backend.value): version for backend, version in torch.stable_abi.items()}
    for place, version in named.items():
        if place != path and place[-1] not in kernel.config.general.backends:
            message = f"'stable-abi' for backend '{place[-1]}', which is not in 'general.backends'"
            remedy = f"add \"{place[-1]}\" to 'general.backends', or remove the entry"
            yield kernel.source.problem("B108", message, path=place, severity="warning", help=remedy)
        elif torch.maxver is not None and torch.maxver < version:
            message = f"'stable-abi' {version} is above 'maxver' {torch.maxver}"
            remedy = f"target a stable ABI of at most {torch.maxver}, or raise 'maxver'"
            yield kernel.source.problem("B107", message, path=place, severity="warning", help=remedy)


def served_backends(kernel: Kernel) -> Iterator[Problem]:
    """Report each backend without a cell, or the whole config, with the reason for each candidate row."""
    backends = kernel.config.general.backends
    release = tuple(row for row in rows() if row.set == _RELEASE)
    decisions = decide(kernel.config, release, unbundled=True)
    starved: dict[Backend, list[Decision]] = {}
    for backend in dict.fromkeys(backends):
        found = [decision for decision in decisions if decision.row.backend is backend]
        cells = [decision.cell for decision in found if decision.cell]
        message = f"backend '{backend}' has no cell in a release, only others"
        remedy = "`builder matrix --all` shows them"
        if not found:
            message = f"backend '{backend}' has no row in the build matrix: a release has no cell for it"
            remedy = without_rows(backend) or "`builder matrix --all` shows what other sets have"
        elif not cells:
            starved[backend] = found
            continue
        elif any(cell.bundle for cell in cells):
            continue
        path = ("general", "backends", backends.index(backend))
        yield kernel.source.problem("B118", message, path=path, severity="note", help=remedy)
    if any(decision.cell for decision in decisions):
        for backend, found in starved.items():
            message = f"backend '{backend}' is left without a cell"
            remedy = f"widen what leaves the rows out, or remove \"{backend}\" from 'general.backends'"
            path = ("general", "backends", backends.index(backend))
            yield _starved(kernel, "B110", message, found, path=path, remedy=remedy)
    elif starved:
        message, remedy = "no cell is left: nothing can be built", "widen what leaves the rows out"
        every = [decision for found in starved.values() for decision in found]
        yield _starved(kernel, "B111", message, every, path=("general", "backends"), remedy=remedy)


def _starved(kernel: Kernel, code: str, message: str, found: list[Decision], *, path: KeyPath, remedy: str) -> Problem:
    """Return a problem with the reason for each row, at the key that excludes most of them, if the file has it."""
    keys = Counter(decision.key for decision in found if decision.key and kernel.source.has(decision.key))
    reasons = "\n".join(f"{decision.row}: {decision.message}" for decision in found)
    backends = dict.fromkeys(decision.row.backend for decision in found)
    sets = [f"`--set {name}`" for name in sets_with_cells(kernel.config, rows(), backends) if name != _RELEASE]
    elsewhere = f"build it with {' or '.join(sets)}, " if sets else ""
    place = keys.most_common(1)[0][0] if keys else path
    return kernel.source.problem(code, f"{message}\n{reasons}", path=place, help=f"{elsewhere}{remedy}")


def compiled_architectures(kernel: Kernel) -> Iterator[Problem]:
    """Report architectures that no toolkit compiles for, and components without any architecture left."""
    for name, component in kernel.config.kernel.items():
        if isinstance(component, CudaComponent) and component.cuda_capabilities is not None:
            path = ("kernel", name, "cuda-capabilities")
            cells = select(kernel.config, rows(), unbundled=True)
            versions = {cell.release for cell in cells if cell.backend is Backend.CUDA and cell.release}
            least = component.cuda_minver
            toolkits = sorted(version for version in versions if least is None or least <= version)
            yield from _cuda(kernel, path, component.cuda_capabilities, toolkits)
            yield from _left_with_none(kernel, path, component.cuda_capabilities, toolkits)
        elif isinstance(component, RocmComponent) and component.rocm_archs is not None:
            yield from _rocm(kernel, ("kernel", name, "rocm-archs"), component.rocm_archs)
    noarch = kernel.config.torch_noarch
    if noarch is not None:
        yield from _cuda(kernel, _noarch(kernel, "cuda_capabilities"), noarch.cuda_capabilities or (), [])
        if noarch.rocm_archs is not None:
            yield from _rocm(kernel, _noarch(kernel, "rocm_archs"), noarch.rocm_archs)


def _noarch(kernel: Kernel, key: str) -> KeyPath:
    kebab = ("torch-noarch", key.replace("_", "-"))
    return kebab if kernel.source.has(kebab) else ("torch-noarch", key)


def _cuda(kernel: Kernel, path: KeyPath, capabilities: tuple[str, ...], toolkits: list[Version]) -> Iterator[Problem]:
    """Check all known toolkits first, then the toolkits of the cells with the component."""
    generations = architectures.generations()
    known = {name for one in generations for name in one.targets}
    for index, capability in enumerate(capabilities):
        if not architectures.toolkits_with(capability, (one.since for one in generations)):
            unknown = [half for half in dict.fromkeys(code_of(capability)) if half not in known]
            half = f", nor has any '{unknown[0]}'" if ":" in capability and unknown else ""
            message = f"no supported CUDA toolkit compiles for '{capability}'{half}: it is left out"
            remedy = f"supported: {listed(sorted(known, key=architectures.natural))}"
        elif toolkits and not architectures.toolkits_with(capability, toolkits):
            named = ", ".join(map(str, toolkits))
            message = f"no toolkit of this kernel's cells, CUDA {named}, compiles for '{capability}': it is left out"
            every = (row.release for row in rows() if row.backend is Backend.CUDA and row.release is not None)
            able = ", ".join(map(str, architectures.toolkits_with(capability, every)))
            which = f"CUDA {able} would" if able else "no row of the build matrix would"
            remedy = f"{which}: remove it, or widen the bounds that leave the other toolkits out"
        else:
            continue
        yield kernel.source.problem("B112", message, path=(*path, index), severity="warning", help=remedy)


def _left_with_none(
    kernel: Kernel, path: KeyPath, requested: tuple[str, ...], toolkits: list[Version]
) -> Iterator[Problem]:
    """Check the toolkits of the cells with the component."""
    able = [toolkit for toolkit in toolkits if architectures.cuda(requested, toolkit).compiled]
    if toolkits and not able:
        remedy = "list a capability that a toolkit has, or remove the key to compile for all of them"
        yield kernel.source.problem("B113", "no capability is left to compile for", path=path, help=remedy)
    elif len(able) < len(toolkits):
        without = ", ".join(str(toolkit) for toolkit in toolkits if toolkit not in able)
        message = f"no capability is left to compile for with CUDA {without}"
        remedy = f"add 'cuda-minver = \"{min(able)}\"', or a capability that the other toolkits have, too"
        yield kernel.source.problem("B113", message, path=path, severity="warning", help=remedy)


def _rocm(kernel: Kernel, path: KeyPath, archs: tuple[str, ...]) -> Iterator[Problem]:
    selection = architectures.rocm(archs)
    for index, arch in enumerate(archs):
        if arch in selection.lost:
            guess = nearest(arch, architectures.facts()["rocm"]["targets"])
            message = f"no supported ROCm compiles for '{arch}': it is left out"
            remedy = f"did you mean '{guess}'?" if guess else f"supported: {listed(architectures.rocm(None).compiled)}"
            yield kernel.source.problem("B112", message, path=(*path, index), severity="warning", help=remedy)
    if not selection.compiled:
        remedy = "list an architecture that ROCm has, or remove the key to compile for all of them"
        yield kernel.source.problem("B113", "no architecture is left to compile for", path=path, help=remedy)


def required_gpus(kernel: Kernel) -> Iterator[Problem]:
    """Report each required GPU for which some cell has no code, once for each reason."""
    required = kernel.config.require
    if not required.gpus:
        return
    cells = select(kernel.config, rows(), unbundled=True)
    for name, why in dict.fromkeys(each for cell in cells for each in coverage.unserved(kernel.config, cell)):
        message, path = f"{why}: such a wheel is refused", ("require", "gpus", required.gpus.index(name))
        remedy = f"add '{name.gpu.arch}' to the architectures of each component that it is to run"
        yield kernel.source.problem("B147", message, path=path, help=remedy)
