"""Which wheels fit which installed framework; an installer cannot tell, so each has an index of its own."""

from collections.abc import Iterable, Mapping

from builder.config import Framework, Version
from builder.matrix import rows
from builder.matrix.variant import Variant, fits
from builder.wheel.kernel_wheel import KernelWheel


def by_environment(wheels: Iterable[KernelWheel]) -> Mapping[str, tuple[KernelWheel, ...]]:
    """Return the wheels for each `torch<version>-<compute>` that some wheel fits, by its name; the newest torch first.

    Wheels of one version of a kernel differ only in a label. An installer takes the highest label that its
    requirements allow, and `torch==2.13.*` matches a CPU build as well as one for CUDA 13.
    """
    newest_first = sorted(fitting(wheels).items(), key=lambda each: (-each[0][0].major, -each[0][0].minor, each[0][1]))
    return {environment(version, compute): found for (version, compute), found in newest_first}


def fitting(wheels: Iterable[KernelWheel]) -> Mapping[tuple[Version, str], tuple[KernelWheel, ...]]:
    """Return the wheels for each PyTorch and compute platform that some wheel fits, in the order of the wheels."""
    listed = tuple(wheels)
    pairs = _environments(listed)
    by_variant: dict[Variant, tuple[tuple[Version, str], ...]] = {}
    found: dict[tuple[Version, str], list[KernelWheel]] = {}
    for kernel_wheel in listed:
        variant = kernel_wheel.variant
        if variant not in by_variant:
            by_variant[variant] = tuple(pair for pair in pairs if fits(variant, torch=pair[0], compute=pair[1]))
        for pair in by_variant[variant]:
            found.setdefault(pair, []).append(kernel_wheel)
    return {pair: tuple(each) for pair, each in found.items()}


def environment(torch: Version, compute: str) -> str:
    """Return the name of the index for one torch and one compute platform."""
    return f"torch{torch.major}{torch.minor}-{compute}"


def _environments(wheels: Iterable[KernelWheel]) -> set[tuple[Version, str]]:
    """Return the pairs of the matrix, and those that only a wheel names."""
    pairs = {(row.torch, row.compute) for row in rows()}
    for kernel_wheel in wheels:
        variant = kernel_wheel.variant
        if variant.framework is Framework.TORCH and variant.version is not None and not variant.stable:
            pairs.add((variant.version, variant.compute))
        elif not variant.backend.facts.components:
            pairs |= {(row.torch, variant.compute) for row in rows()}
    return pairs
