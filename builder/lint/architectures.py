"""Find architectures that no toolkit compiles for, and required GPUs that some cell has no code for."""

from collections.abc import Iterator

from builder.config import Backend, Version
from builder.config.gpus import code_of
from builder.config.source_tables import CudaComponent, RocmComponent
from builder.config.text import KeyPath
from builder.errors import Problem
from builder.kernel import Kernel
from builder.matrix import architectures, coverage, rows, select
from builder.matrix.rules import minor
from builder.wording import listed, nearest


def compiled(kernel: Kernel) -> Iterator[Problem]:
    """Yield architectures that no toolkit compiles for, and components that are left with none."""
    for name, component in kernel.config.kernel.items():
        if isinstance(component, CudaComponent) and component.cuda_capabilities is not None:
            path = ("kernel", name, "cuda-capabilities")
            cells = select(kernel.config, rows(), unbundled=True)
            versions = {minor(cell.toolkit) for cell in cells if cell.backend is Backend.CUDA and cell.toolkit}
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
    """Judge all toolkits that are known, and then the toolkits of the cells that have the component."""
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
            every = (minor(row.toolkit) for row in rows() if row.backend is Backend.CUDA and row.toolkit is not None)
            able = ", ".join(map(str, architectures.toolkits_with(capability, every)))
            which = f"CUDA {able} would" if able else "no row of the build matrix would"
            remedy = f"{which}: remove it, or widen the bounds that leave the other toolkits out"
        else:
            continue
        yield kernel.source.problem("B112", message, path=(*path, index), severity="warning", help=remedy)


def _left_with_none(
    kernel: Kernel, path: KeyPath, requested: tuple[str, ...], toolkits: list[Version]
) -> Iterator[Problem]:
    """Judge the toolkits of the cells that have the component."""
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
    """Yield each required GPU that some cell has no code for, once for each reason."""
    required = kernel.config.require
    if not required.gpus:
        return
    cells = select(kernel.config, rows(), unbundled=True)
    for name, why in dict.fromkeys(each for cell in cells for each in coverage.unserved(kernel.config, cell)):
        message, path = f"{why}: such a wheel is refused", ("require", "gpus", required.gpus.index(name))
        remedy = f"add '{name.gpu.arch}' to the architectures of each component that it is to run"
        yield kernel.source.problem("B147", message, path=path, help=remedy)
