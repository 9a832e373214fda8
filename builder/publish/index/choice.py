"""Which wheels fit which installed framework; an installer cannot tell, so each has an index of its own."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from builder.config import Framework, Version
from builder.matrix import rows
from builder.matrix.variant import Variant, fits
from builder.wheel.kernel_wheel import KernelWheel

Environment = tuple[Version, str]
"""A PyTorch, and the compute platform that it was built for."""


def named(environments: Iterable[Environment]) -> tuple[str, ...]:
    """Return the names of the indexes for these, each once; the newest torch first.

    Wheels of one version of a kernel differ only in a label. An installer takes the highest label that its
    requirements allow, and `torch==2.13.*` matches a CPU build as well as one for CUDA 13.
    """
    newest_first = sorted(set(environments), key=lambda each: (-each[0].major, -each[0].minor, each[1]))
    return tuple(name(environment) for environment in newest_first)


def fitting(
    wheels: Sequence[KernelWheel], among: frozenset[Environment] | None = None
) -> Mapping[Environment, tuple[KernelWheel, ...]]:
    """Return the wheels for each environment that some wheel fits, in the order of the wheels.

    `among` are those that are looked at; None is those that the matrix and these wheels name.
    """
    pairs = environments(frozenset(each.variant for each in wheels)) if among is None else among
    found: dict[Environment, list[KernelWheel]] = {}
    for kernel_wheel in wheels:
        for pair in _fitted(kernel_wheel.variant, pairs):
            found.setdefault(pair, []).append(kernel_wheel)
    return {pair: tuple(each) for pair, each in found.items()}


@lru_cache(maxsize=1 << 12)
def _fitted(variant: Variant, among: frozenset[Environment]) -> tuple[Environment, ...]:
    """Return those of some environments that a wheel of a variant fits; kernels mostly have the same variants."""
    return tuple(pair for pair in among if fits(variant, torch=pair[0], compute=pair[1]))


def name(environment: Environment) -> str:
    """Return the name of the index for one torch and one compute platform."""
    torch, compute = environment
    return f"torch{torch.major}{torch.minor}-{compute}"


@lru_cache(maxsize=1 << 8)
def environments(variants: frozenset[Variant]) -> frozenset[Environment]:
    """Return the environments of the matrix, and those that only one of these variants names."""
    pairs = {(row.torch, row.compute) for row in rows()}
    for variant in variants:
        if variant.framework is Framework.TORCH and variant.version is not None and not variant.stable:
            pairs.add((variant.version, variant.compute))
        elif not variant.backend.facts.components:
            pairs |= {(row.torch, variant.compute) for row in rows()}
    return frozenset(pairs)
