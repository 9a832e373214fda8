"""Find architectures that no toolkit compiles for, and required GPUs that some cell has no code for."""

from collections.abc import Iterator

from builder.config import Backend, Version
from builder.config.gpus import code_of
from builder.config.source_tables import CudaComponent, RocmComponent
from builder.config.text import KeyPath
from builder.errors import Problem
from builder.kernel import Kernel
from builder.matrix import architectures, coverage, rows, select
from builder.wording import listed, nearest


def compiled(kernel: Kernel) -> Iterator[Problem]:
    """Yield architectures that no toolkit compiles for, and components that are left with none."""
    for name, component in kernel.config.kernel.items():
        if isinstance(component, CudaComponent) and component.cuda_capabilities is not None:
            path = ("kernel", name, "cuda-capabilities")
            yield from _cuda(kernel, path, component.cuda_capabilities, _toolkits(kernel, component.cuda_minver))
            yield from _left_with_none(kernel, path, component)
        elif isinstance(component, RocmComponent) and component.rocm_archs is not None:
            yield from _rocm(kernel, ("kernel", name, "rocm-archs"), component.rocm_archs)
    noarch = kernel.config.torch_noarch
    if noarch is not None:
        yield from _cuda(kernel, _noarch(kernel, "cuda_capabilities"), noarch.cuda_capabilities or (), [])
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
            yield kernel.source.problem(
                "B112",
                f"no supported CUDA toolkit compiles for '{capability}'{half}: it is left out",
                path=(*path, index),
                severity="warning",
                help=f"supported: {listed(sorted(known, key=architectures.natural))}",
            )
        elif toolkits and not architectures.toolkits_with(capability, toolkits):
            yield _unselected(kernel, (*path, index), capability, toolkits)


def _unselected(kernel: Kernel, path: KeyPath, capability: str, toolkits: list[Version]) -> Problem:
    """Return the finding for a capability that other toolkits have."""
    every = (row.release for row in rows() if row.backend is Backend.CUDA and row.release is not None)
    able = architectures.toolkits_with(capability, every)
    which = f"CUDA {', '.join(map(str, able))} would" if able else "no row of the build matrix would"
    return kernel.source.problem(
        "B112",
        f"no toolkit of this kernel's cells, CUDA {', '.join(map(str, toolkits))}, compiles for "
        f"'{capability}': it is left out",
        path=path,
        severity="warning",
        help=f"{which}: remove it, or widen the bounds that leave the other toolkits out",
    )


def _left_with_none(kernel: Kernel, path: KeyPath, component: CudaComponent) -> Iterator[Problem]:
    """Judge the toolkits of the cells that have the component."""
    requested = component.cuda_capabilities
    toolkits = _toolkits(kernel, component.cuda_minver)
    empty = [toolkit for toolkit in toolkits if not architectures.cuda(requested, toolkit).compiled]
    if not empty:
        return
    if empty == toolkits:
        remedy = "list a capability that a toolkit has, or remove the key to compile for all of them"
        yield kernel.source.problem("B113", "no capability is left to compile for", path=path, help=remedy)
        return
    able = [toolkit for toolkit in toolkits if toolkit not in empty]
    yield kernel.source.problem(
        "B113",
        f"no capability is left to compile for with CUDA {', '.join(str(toolkit) for toolkit in empty)}",
        path=path,
        severity="warning",
        help=f"add 'cuda-minver = \"{min(able)}\"', or a capability that the other toolkits have, too",
    )


def _toolkits(kernel: Kernel, minver: Version | None) -> list[Version]:
    cells = select(kernel.config, rows(), unbundled=True)
    versions = {cell.release for cell in cells if cell.backend is Backend.CUDA and cell.release is not None}
    return sorted(version for version in versions if minver is None or minver <= version)


def _rocm(kernel: Kernel, path: KeyPath, archs: tuple[str, ...] | None) -> Iterator[Problem]:
    if archs is None:
        return
    supported = architectures.rocm(None).compiled
    lost = architectures.rocm(archs).lost
    for index, arch in enumerate(archs):
        if arch in lost:
            guess = nearest(arch, architectures.facts()["rocm"]["targets"])
            yield kernel.source.problem(
                "B112",
                f"no supported ROCm compiles for '{arch}': it is left out",
                path=(*path, index),
                severity="warning",
                help=f"did you mean '{guess}'?" if guess else f"supported: {listed(supported)}",
            )
    if not architectures.rocm(archs).compiled:
        remedy = "list an architecture that ROCm has, or remove the key to compile for all of them"
        yield kernel.source.problem("B113", "no architecture is left to compile for", path=path, help=remedy)


def required_gpus(kernel: Kernel) -> Iterator[Problem]:
    """Yield each required GPU that some cell has no code for, once for each reason."""
    required = kernel.config.require
    if required is None:
        return
    cells = select(kernel.config, rows(), unbundled=True)
    found = dict.fromkeys(each for cell in cells for each in coverage.unserved(kernel.config, cell))
    for name, why in found:
        yield kernel.source.problem(
            "B147",
            f"{why}: such a wheel is refused",
            path=("require", "gpus", required.gpus.index(name)),
            help=f"add '{name.gpu.arch}' to the architectures of each component that it is to run",
        )
